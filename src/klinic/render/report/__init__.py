"""The report as one page: ``data`` makes its document, ``page`` the file, ``assets/report`` shows it."""
