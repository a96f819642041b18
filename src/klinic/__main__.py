"""``python -m klinic``."""

from klinic.cli import main

if __name__ == "__main__":
    main()
