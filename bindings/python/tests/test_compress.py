"""division.compress on small networks: what comes back, what is packed, what is refused."""
import gc
import threading

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from networks import distance, gradient, images, small
from torch import nn
from torch.utils.checkpoint import checkpoint

import division.torch as division
from division.torch.kept import Bits, Codes, Exact, InRange, Mask, ShapeOnly, Winners

MANY = "division:block=8,bits=8"


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def loss_of(model, x):
    labels = torch.arange(len(x)) % 10
    return lambda: nn.functional.cross_entropy(model(x), labels)


def saved(model, x, method="division:bits=2"):
    """What is kept of a forward pass: tensor, form, and whether that is new."""
    triples = []
    context = division.compress(model, method)
    context._observer = lambda tensor, kept, new: triples.append((tensor.detach().clone(), kept, new))
    with context:
        output = model(x)
    del output
    return triples


# ---- gradients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inplace", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_exact_is_pytorch_to_the_bit(inplace, last):
    model, x = small(inplace), images()
    if last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    loss = loss_of(model, x)
    assert torch.equal(gradient(model, loss, division.compress(model, "exact")), gradient(model, loss))


@pytest.mark.parametrize("inplace", [True, False])
@pytest.mark.parametrize("method, most", [("division", 0.5), (MANY, 0.01), ("division:bits=4,recompute=norms", 0.05)])
def test_gradients_are_close(inplace, method, most):
    model = small(inplace)
    loss = loss_of(model, images())
    assert 0 < distance(gradient(model, loss, division.compress(model, method)), gradient(model, loss)) < most


@pytest.mark.parametrize("method", ["division", "division:recompute=norms,dither=subtractive"])
def test_the_mean_over_draws_is_the_gradient(method):
    """The squared error of the mean over 200 draws is what their variance makes of it."""
    model = small()
    loss = loss_of(model, images())
    exact = gradient(model, loss).double()
    draws = torch.stack([gradient(model, loss, division.compress(model, method, seed=s)) for s in range(200)]).double()
    error = (draws.mean(0) - exact).pow(2).sum()
    expected = draws.var(0).sum() / len(draws)
    assert error < 1.5 * expected


def test_a_seed_gives_the_same_gradient():
    model = small()
    loss = loss_of(model, images())
    one, same, other = (gradient(model, loss, division.compress(model, seed=s)) for s in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_recomputed_norms_have_less_noise():
    blocks = [nn.Sequential(nn.Conv2d(c, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(True)) for c in (3, 32, 32)]
    model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    loss = loss_of(model, images())
    exact = gradient(model, loss)

    def noise(method):
        draws = [gradient(model, loss, division.compress(model, method, seed=s)) for s in range(4)]
        return sum(distance(draw, exact) ** 2 for draw in draws)

    assert noise("division:recompute=norms") < 0.2 * noise("division")


# ---- forms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inplace", [True, False])
def test_what_a_relu_saved_has_its_zeros(inplace):
    triples = saved(small(inplace), images())
    masks = [(t, k) for t, k, _ in triples if isinstance(k, Mask)]
    assert len(masks) == 3
    for tensor, kept in masks:
        assert torch.equal(kept.unpack() > 0, tensor > 0)
    rectified = [(t, k) for t, k, _ in triples if isinstance(k, Codes) and k.mask is not None]
    assert rectified
    for tensor, kept in rectified:
        assert (kept.unpack()[tensor == 0] == 0).all()


def test_a_relu_outside_of_the_context_keeps_its_zeros():
    """Its first reader inside is no ReLU, and gets numbers."""
    head = nn.Conv2d(16, 16, 3, padding=1)
    h = nn.functional.relu(nn.functional.conv2d(images(4, 3), torch.randn(16, 3, 3, 3, requires_grad=True)))
    tensor, kept, _ = next(t for t in saved(head, h, MANY) if t[0].shape == h.shape)
    assert isinstance(kept, Codes) and kept.codec.startswith("rectified")
    assert (kept.unpack()[tensor == 0] == 0).all() and torch.allclose(kept.unpack(), tensor, atol=0.2)


CUT = [nn.ReLU6(), nn.ReLU6(True), nn.Hardtanh(-0.5, 0.5), nn.LeakyReLU(0.1), nn.LeakyReLU(0.1, True)]


@pytest.mark.parametrize("layer", CUT, ids=str)
def test_cut_activations_pass_exact_gradients(layer):
    """They read where their input lay, and nothing else: the gradient of a bias before them is exact."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3), layer)
    with torch.no_grad():
        model[0].weight.requires_grad_(False).mul_(20)
    x = images()
    loss = lambda: model(x).mul(torch.linspace(-1, 1, 22)).sum()
    assert torch.allclose(gradient(model, loss, division.compress(model)), gradient(model, loss), rtol=1e-5)
    assert {type(k) for _, k, _ in saved(model, x)} & {Mask, InRange}


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.a, self.b = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 8, 1), nn.Conv2d(16, 8, 3, padding=1)

    def forward(self, x):
        h = self.first(x)
        return self.a(h) + self.b(h)


def test_a_tensor_of_several_layers_is_packed_once():
    ours = [(k, new) for t, k, new in saved(Shared(), images()) if t.shape[1:] == (16, 22, 22)]
    assert len(ours) == 2 and ours[0][0] is ours[1][0] and [new for _, new in ours] == [True, False]


def test_an_address_that_is_used_again_is_another_tensor():
    model = nn.Conv2d(16, 16, 1)
    loss, expected = 0, 0
    with division.compress(model, MANY):
        for i in range(6):  # each input is freed before the next one is made, most likely at the same address
            h = torch.full((4, 16, 20, 20), float(i), requires_grad=True) * 1.0
            loss = loss + model(h).sum()
            expected += i * 4 * 400
            del h
    loss.backward()
    assert torch.allclose(model.weight.grad, torch.full_like(model.weight.grad, expected), rtol=1e-3)


def test_parameters_and_small_tensors_stay():
    model = small()
    own = {p.shape for p in model.parameters()}
    for tensor, kept, _ in saved(model, images()):
        if tensor.numel() < 4096 or tensor.shape in own:
            assert isinstance(kept, Exact)


@pytest.mark.parametrize("pool", [nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(2), nn.MaxPool2d(5, 1, 2)], ids=str)
def test_indices_come_back(pool):
    triples = saved(nn.Sequential(pool), images(4, 16, 23).requires_grad_() * 1)
    ((indices, kept),) = [(t, k) for t, k, _ in triples if t.dtype is torch.int64]
    assert isinstance(kept, Winners) and torch.equal(kept.unpack(), indices)
    assert kept.nbytes < indices.numel() * 8 / (9 if pool.kernel_size <= 3 else 6)
    assert any(isinstance(k, ShapeOnly) for _, k, _ in triples)


def test_bools_come_back():
    bools = torch.rand(4, 16, 23, 23) > 0.5
    assert torch.equal(Bits(bools).unpack(), bools)
    turned = bools.to(memory_format=torch.channels_last)
    assert torch.equal(Bits(turned).unpack(), bools)


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last], ids=str)
def test_pooled_gradients_are_exact(memory):
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.MaxPool2d(3, 2, 1))
    model[0].weight.requires_grad_(False)
    x = images().to(memory_format=memory)
    loss = lambda: model(x).mul(torch.linspace(-1, 1, 11)).sum()
    assert torch.allclose(gradient(model, loss, division.compress(model)), gradient(model, loss), rtol=1e-5)


VIEWS = {
    "contiguous": lambda x: x,
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
    "permuted": lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    "turned": lambda x: x.transpose(2, 3),
    "a slice of images": lambda x: x[2:],
    "a slice of channels": lambda x: x[:, 4:12],
    "rows": lambda x: x[:, :, ::2],
    "expanded": lambda x: x[:, :, :1].expand(-1, -1, 24, -1),
}
WITHOUT_COPY = list(VIEWS)[:5]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_views_come_back(view, kind):
    x = VIEWS[view](torch.randn(8, 16, 24, 24).to(kind))
    kept = division.compress(nn.Identity(), MANY)._keep(x)[0]
    again = kept.unpack()
    assert again.shape == x.shape and again.dtype == kind
    assert (again.float() - x.float()).abs().max() < 0.1
    if view in WITHOUT_COPY:
        assert isinstance(kept, Codes) and again.stride() == x.stride()


def test_what_is_not_finite_stays_exact():
    x = images()
    x[0, 0, 0, 0] = float("inf")
    triples = saved(nn.Sequential(nn.Conv2d(3, 16, 1), nn.Conv2d(16, 8, 1)), x)
    bad = [k for t, k, _ in triples if not t.isfinite().all()]
    assert len(bad) == 2 and all(isinstance(k, Exact) for k in bad)


# ---- surroundings ----------------------------------------------------------------------------------------------------


def test_autocast():
    model, x = small(), images()

    def loss():
        with torch.autocast("cpu", torch.bfloat16):
            output = model(x)
        return nn.functional.cross_entropy(output.float(), torch.arange(len(x)) % 10)

    assert distance(gradient(model, loss, division.compress(model, MANY)), gradient(model, loss)) < 0.05
    kinds = []
    context = division.compress(model)
    context._observer = lambda tensor, kept, new: kinds.append((tensor.dtype, type(kept)))
    with context:
        loss()
    assert (torch.bfloat16, Codes) in kinds


def test_two_backward_passes():
    model = small()
    with division.compress(model):
        loss = loss_of(model, images())()
    loss.backward(retain_graph=True)
    first = [p.grad.clone() for p in model.parameters()]
    loss.backward()
    assert all(torch.allclose(p.grad, 2 * g) for p, g in zip(model.parameters(), first))


def test_second_derivatives_are_refused():
    model = small()
    with division.compress(model):
        loss = loss_of(model, images())()
    with pytest.raises(RuntimeError, match="second derivative"):
        torch.autograd.grad(loss, list(model.parameters()), create_graph=True)


def test_no_grad_and_backward_inside():
    model, x = small(), images()
    with division.compress(model), torch.no_grad():
        assert model(x).grad_fn is None
    with division.compress(model):
        loss_of(model, x)().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint(reentrant):
    model, x = small(), images().requires_grad_()
    h = lambda: checkpoint(model[1:7], model[0](x), use_reentrant=reentrant)  # it saves its input, and recomputes from it
    loss = lambda: nn.functional.cross_entropy(model[7:](h()), torch.arange(len(x)) % 10)
    exact = gradient(model, loss)
    noisy = gradient(model, loss, division.compress(model, MANY))
    assert 0 < distance(noisy, exact) < 0.02
    inside = sum(p.numel() for p in model[1:7].parameters())
    first = sum(p.numel() for p in model[0].parameters())
    assert distance(noisy[first : first + inside], exact[first : first + inside]) < 0.01


def test_frozen_layers():
    model, x = small(), images()
    for p in model[:7].parameters():
        p.requires_grad_(False)
    loss = loss_of(model, x)
    assert distance(gradient(model, loss, division.compress(model, MANY)), gradient(model, loss)) < 0.02


def test_threads_each_with_a_context():
    """As DataParallel has them: copies of a model, each in a thread."""
    models, x, errors = [small() for _ in range(4)], images(), []
    for model in models[1:]:
        model.load_state_dict(models[0].state_dict())

    def work(model):
        try:
            for _ in range(3):
                gradient(model, loss_of(model, x), division.compress(model, MANY))
        except Exception as error:  # pragma: no cover
            errors.append(error)

    threads = [threading.Thread(target=work, args=(m,)) for m in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    exact = gradient(models[0], loss_of(models[0], x))
    for model in models[1:]:
        assert distance(torch.cat([p.grad.flatten() for p in model.parameters()]), exact) < 0.02


@pytest.mark.parametrize("dims", [1, 3])
def test_networks_of_one_and_three_dimensions(dims):
    conv, norm, pool, side = {
        1: (nn.Conv1d, nn.BatchNorm1d, nn.AdaptiveAvgPool1d, 300), 3: (nn.Conv3d, nn.BatchNorm3d, nn.AdaptiveAvgPool3d, 14)
    }[dims]
    model = nn.Sequential(conv(3, 16, 3), norm(16), nn.ReLU(True), conv(16, 32, 3), norm(32), nn.ReLU(), pool(1), nn.Flatten())
    x = images(6, 3, side, dims)
    loss = loss_of(model, x)
    assert distance(gradient(model, loss, division.compress(model, MANY)), gradient(model, loss)) < 0.03
    assert sum(isinstance(k, Codes) for _, k, _ in saved(model, x)) >= 4


def test_a_change_in_place_is_told():
    scale = torch.randn(4, 8, requires_grad=True)
    with division.compress(nn.Identity()):
        h = scale * 2
        loss = (h * h).sum()
    with torch.no_grad():
        h.zero_()
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


@pytest.mark.parametrize("method", ["exact", "division", "division:recompute=norms"])
def test_nothing_is_held_on_to(method):
    """A graph that is not run backward is freed without help of the garbage collector."""
    model, x = small(), images()
    alive = lambda: sum(type(o) in (Codes, Mask, Exact) for o in gc.get_objects())
    gc.collect()
    gc.disable()
    try:
        before = alive()
        with division.compress(model, method):
            output = model(x)
        del output
        assert alive() == before
    finally:
        gc.enable()


def test_memory_does_not_grow():
    def resident():
        with open("/proc/self/status", encoding="ascii") as status:
            return int(next(line for line in status if line.startswith("VmRSS")).split()[1])

    model, x = small(), images(16)
    for step in range(200):
        gradient(model, loss_of(model, x), division.compress(model, "division:recompute=norms"))
        if step == 19:
            early = resident()
    assert resident() < early + 4096  # kB


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_other_devices_are_told():
    with pytest.raises(division.DivisionError, match="0.weight is on the device meta: division packs tensors of the CPU"):
        with division.compress(nn.Sequential(nn.Conv2d(3, 3, 3, device="meta"))):
            pass


WRONG = [
    ("actnn", 'unknown method "actnn"'),
    ("division:bits=3", "must be 1, 2, 4 or 8"),
    ("division:bots=2", 'unknown option "bots"'),
    ("division:recompute=all", "must be nothing or norms"),
    ("exact:bits=2", "takes no options"),
]


@pytest.mark.parametrize("method, words", WRONG)
def test_wrong_methods_are_told(method, words):
    with pytest.raises(division.DivisionError, match=words):
        division.compress(small(), method)


def test_wrong_calls_are_told():
    with pytest.raises(TypeError, match="takes a torch.nn.Module first"):
        division.compress("division")
    context = division.compress(small())
    with context, pytest.raises(RuntimeError, match="entered already"):
        context.__enter__()


# ---- tokens ----------------------------------------------------------------------------------------------------------

TOKENS = {
    "tokens": (torch.nn.LayerNorm(32), lambda x: x.flatten(2).transpose(1, 2).contiguous()),
    "tokens of a map": (torch.nn.LayerNorm(32), lambda x: x.flatten(2).transpose(1, 2)),
    "tokens first": (torch.nn.LayerNorm(32), lambda x: x.flatten(2).permute(2, 0, 1).contiguous().transpose(0, 1)),
    "a map": (torch.nn.LayerNorm(32), lambda x: x.permute(0, 2, 3, 1)),
    "a map, channels last": (torch.nn.LayerNorm(32), lambda x: x.permute(0, 2, 3, 1).contiguous()),
}


@pytest.mark.parametrize("name", TOKENS)
def test_layer_norms_are_packed_along_tokens(name):
    """Neighbouring tokens are alike, neighbouring channels are not: the error says which of them blocks are made of."""
    norm, view = TOKENS[name]
    smooth = nn.functional.interpolate(torch.randn(4, 32, 3, 3), size=(16, 16), mode="bilinear") + 10 * torch.randn(1, 32, 1, 1)
    x = view(smooth.requires_grad_() * 1)
    tensor, kept, _ = next(t for t in saved(norm, x, "division:bits=2") if t[0].shape == x.shape)
    again = kept.unpack()
    assert kept.name == "packed along tokens" and again.shape == x.shape
    assert distance(again, tensor) < 0.1
    assert kept.nbytes < tensor.numel() * 4 / 7
