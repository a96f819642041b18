"""What a crash says about memory: which side ran out, at what, and how large; and the budget that would have told.

``last_words`` reduces the events of a log, as :mod:`klinic.curves` reduces an array; ``budget`` is the ledger behind
``klinic memory``.
"""

from klinic.memory.crash import Crash, last_words

__all__ = ["Crash", "last_words"]
