"""Bounds as text. Apart from tasks, so that programs that only show cards load no arrays."""


def in_digits(bound: float) -> str:
    """Format a bound, an integer with all of its digits.

    Parameters
    ----------
    bound : float

    Examples
    --------
    >>> in_digits(2**63 - 1), in_digits(0.5)
    ('9223372036854775807', '0.5')
    """
    return str(bound) if isinstance(bound, int) else f"{bound:.15g}"
