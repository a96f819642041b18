"""The local web app: runs worst first, the report live, and all that klinic says of them, in a browser.

    places (which runs lie where) -> work (one thread) -> examine (one process: read, judge, remember) -> store (SQLite)
                                                                                                            |
    guard (who may ask) -> app (addresses) -> views (one page a file) -> templates          board (rows in memory) -> events

Requests read what is known and wait for no run to be read. Nothing is ever written into a folder of runs.
"""
