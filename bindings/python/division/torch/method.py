"""The method: a text as the program `division` takes it, and the codecs that follow from it."""
from .._library import DivisionError, packed_bytes

_RECOMPUTE = {"nothing": False, "norms": True}


class Method:
    """ "exact", or "division:block=8,bits=2,dither=stochastic,recompute=norms"."""

    def __init__(self, text: str):
        self.text = text
        name, _, rest = text.partition(":")
        if name not in ("division", "exact", "none"):
            raise DivisionError(f'unknown method "{name}": there are "division", with options after a colon, and "exact"')
        options = rest.split(",") if rest else []
        self.exact = name != "division"
        if self.exact and options:
            raise DivisionError(f"{name} takes no options")
        self.recompute_norms = False
        self._options = [option for option in options if not self._takes(option)]
        self.bits = 2
        for option in self._options:
            if option.startswith("bits="):
                self.bits = int(option[5:]) if option[5:].isdigit() else 0
        self.maps = self._codec(self.bits)  # of a map of activations
        packed_bytes(self.maps, "f32 nchw 1x1x2")  # an error of the library names the option and its bounds
        self.images = self._codec(8)  # of the network's input: made of bytes, and the first layer's gradient depends on it
        self.sources = self._codec(min(2 * self.bits, 8))  # of what another map is recomputed from

    def _takes(self, option: str) -> bool:
        """Reads what is an option of the method and not of its codec."""
        name, _, value = option.partition("=")
        if name != "recompute":
            return False
        if value not in _RECOMPUTE:
            raise DivisionError(f"division: recompute={value}: must be nothing or norms")
        self.recompute_norms = _RECOMPUTE[value]
        return True

    def _codec(self, bits: int) -> str:
        others = [option for option in self._options if not option.startswith("bits=")]
        return "division:" + ",".join(others + [f"bits={bits}"])

    @staticmethod
    def rectified(codec: str) -> str:
        """The codec that keeps the zeros of a ReLU's output too."""
        return "rectified" + codec[len("division") :]
