"""The codec for plain arrays."""
import division
import pytest

numpy = pytest.importorskip("numpy", reason="numpy is not installed")
codec = pytest.importorskip("division.numpy")


def made(shape, kind="float32", seed=1):
    return numpy.maximum(numpy.random.default_rng(seed).normal(size=shape), 0).astype(kind)


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 50), (2, 3, 9, 11), (2, 3, 5, 9, 11)])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_arrays_come_back(shape, kind, layout):
    array = made(shape, kind)
    assert (codec.decode(codec.encode(array, "exact", layout=layout)) == array).all()
    again = codec.decode(codec.encode(array, "division:bits=8", layout=layout))
    assert again.dtype == array.dtype and abs(again - array).max() < 0.05


def test_zeros_come_back():
    array = made((2, 16, 28, 28))
    packed = codec.encode(array, "rectified")
    assert (codec.decode(packed)[array == 0] == 0).all()
    assert packed.nbytes < array.nbytes / 8


def test_the_mean_over_seeds_is_the_array():
    """Its squared error is what the variance of the draws makes of it."""
    array = made((1, 2, 16, 16))
    draws = numpy.stack([codec.decode(codec.encode(array, seed=s)) for s in range(400)]).astype(float)
    assert ((draws.mean(0) - array) ** 2).sum() < 1.3 * draws.var(0).sum() / 400


def test_views_are_packed_as_they_look():
    array = made((4, 8, 20, 20))[::2, :, ::2]
    assert (codec.decode(codec.encode(array, "exact")) == array).all()


def test_what_cannot_be_packed_is_told():
    with pytest.raises(division.DivisionError, match="float64"):
        codec.encode(numpy.zeros((2, 3, 4)))
    with pytest.raises(division.DivisionError, match="images, channels"):
        codec.encode(numpy.zeros(3, "f4"))
    with pytest.raises(division.NotFiniteError, match="NaN in image 1, channel 2"):
        array = made((2, 3, 8, 8))
        array[1, 2, 3, 4] = numpy.nan
        codec.encode(array)
