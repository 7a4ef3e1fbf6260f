"""How long a transfer waits for the network, and when it gives up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """connect_s, read_s: until a connection opens, and until its next byte (a stalled transfer).

    attempts: so many in a row that brought no byte end it; one that brought some starts the count
    again, so a long transfer over a bad line ends well, however long it takes.
    write_s: until the answer to an upload, which S3 puts together from its parts first.
    base_s, cap_s: of the back-off between attempts. wrong_contents: how often a file that arrived
    whole but wrong is fetched.
    """

    connect_s: float = 5.0
    read_s: float = 20.0
    write_s: float = 300.0
    attempts: int = 7
    base_s: float = 0.5
    cap_s: float = 20.0
    wrong_contents: int = 3

    def backoff_s(self, failures: int, random: float) -> float:
        """The wait after `failures` (1 or more) in a row; `random` in [0, 1).

        Exponential with full jitter: of many replicas that failed together, few return together
        (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
        """
        # Past 2**32 the cap holds anyway, and a float would overflow.
        return random * min(self.cap_s, self.base_s * 2.0 ** min(failures - 1, 32))
