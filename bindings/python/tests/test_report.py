"""What a report tells."""
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from networks import images, small

import division.torch as division


def test_a_report_counts_what_is_kept_and_leaves_the_model_alone():
    model, x = small(), images()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    made = division.report(model, x)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not model[0]._forward_hooks and not model[3]._forward_hooks
    forms = {row.form for row in made.rows}
    assert {"packed", "mask", "exact", "indices", "shape"} <= forms
    assert made.before > 8 * made.after
    assert {row.layer for row in made.rows} >= {"0", "1", "2", "3", "4"}


def test_errors_are_those_of_the_codec():
    made = division.report(small(), images(), "division:bits=8")
    errors = [row.error for row in made.rows if row.form == "packed"]
    assert errors and all(0 < error < 0.05 for error in errors)
    exact = division.report(small(), images(), "exact")
    assert all(row.form == "exact" for row in exact.rows)


def test_table_and_page():
    made = division.report(small(), images())
    text = str(made)
    assert text.splitlines()[0].split() == ["layer", "shape", "kept", "as", "bytes", "kept", "bytes", "error"]
    assert text.splitlines()[-1] == made.summary() and "times fewer" in made.summary()
    page = made.html()
    assert page.startswith("<!doctype html>") and page.count("<tr>") == len(made.rows) + 1
