"""A laboratory for the theory of in-context learning.

Import the room you need, for example ``from lsa_lab.models import linear_attention``. Nothing is
configured on import: precision, devices and caches are the business of whoever starts the process.
"""

__version__ = "0.2.0"
