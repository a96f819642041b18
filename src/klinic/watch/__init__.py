"""Watch runs while they grow. The order of the data: follow -> monitor -> alert -> state -> deliver -> targets.

from klinic.watch import Watch
Watch([Path("runs/")], on_alert=print).run()
"""

from klinic.watch.loop import Watch

__all__ = ["Watch"]
