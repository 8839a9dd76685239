"""A recipe of another package: one file, one option."""

from dataclasses import asdict

from extending.plugins import install_example, load_example

from tsgkit.models._model import Model

example = load_example("recipe")


def test_training_by_a_recipe_of_another_package(tsgkit, tsgkit_process, tmp_path, monkeypatch):
    install_example(tmp_path, monkeypatch, "recipe", "tsgkit.recipes", "quick-tsg=QUICK")
    usage = " ".join(tsgkit_process("train", "--help").stdout.split())
    assert "cohn2010, shindo2011, shindo2012 or quick-tsg" in usage
    said = tsgkit("train", "--recipe=quick-tsg", "--iterations=2", "village:dev", "-o", "m.model").stderr
    assert "not as in the recipe quick-tsg: --iterations=2 instead of 50" in said
    model = Model.load(tmp_path / "m.model")
    assert model.kind == "tsg"
    assert model.info["settings"] == {**asdict(example.QUICK.settings), "iterations": 2}
