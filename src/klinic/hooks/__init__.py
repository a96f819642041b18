"""klinic inside a trainer that is somebody else's: what it does not log is logged, and the run is diagnosed as it goes.

A hook may never break the training it watches: what fails inside is said once, and the hook goes quiet.
"""
