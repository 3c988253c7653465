"""`recsys fuse`: files of lists in, a file of fused lists out."""

from __future__ import annotations

import pytest

import recsys
from recsys.models import save_model

A = "user,item,score\nu1,a,3\nu1,b,2\nu2,c,1\n"
B = "user,item,rank\nu1,b,1\nu1,c,2\n"
SCORED = "user,item,score\nu1,b,5\nu1,c,4\nu2,a,1\n"


@pytest.fixture
def files(tmp_path):
    for name, text in {
        "a.csv": A,
        "b.csv": B,
        "c.csv": SCORED,
        "truth.csv": "user,item\nu1,b\nu2,c\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_file_holds_what_the_library_gives(command, files):
    result = command("fuse", files / "a.csv", files / "b.csv", "--param", "k=1", "-o", files / "fused.csv")
    assert result.exit_code == 0, result.output
    assert "fused.csv: 4 rows, 2 users, rrf of 2 files" in result.stderr
    ours = recsys.read_file(files / "fused.csv", "lists")
    theirs = recsys.fuse([files / "a.csv", files / "b.csv"], "rrf", k=1)
    assert ours.codes.tolist() == theirs.codes.tolist()
    assert ours.scores.tolist() == theirs.scores.tolist()


def test_without_a_file_it_is_printed(command, files):
    result = command(
        "fuse", files / "a.csv", files / "c.csv", "--method", "wsum", "--weights", "1,0.5", "--norm", "none"
    )
    assert result.stdout.splitlines()[:3] == ["user,item,score", "u1,b,4.5", "u1,a,3.0"]


def test_parameters_are_found_on_validation_data(command, files):
    tuned = ("--tune-on", files / "a.csv", "--tune-on", files / "c.csv", "--truth", files / "truth.csv")
    result = command("fuse", files / "c.csv", files / "a.csv", "--method", "wsum", *tuned, "-m", "mrr")
    assert result.exit_code == 0, result.output
    assert "the best of 11 trials" in result.stderr
    (files / "truth.csv").write_text("user,item,grade\nu1,b,1\nu2,c,1\nu2,b,-1\n")
    arguments = ("fuse", files / "c.csv", files / "a.csv", "--method", "wsum", *tuned, "-m", "mrr")
    assert "--set negative_grades=unjudged reads them" in command(*arguments).stderr
    assert command(*arguments, "--set", "negative_grades=unjudged").stdout == result.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "rff"], "Did you mean 'rrf'"),
        (["--method", "wsum", "--norm", "rank", "--weights", "x"], "expected numbers"),
        (["--truth", "t.csv"], "go together"),
        (["--tune-on", "a.csv", "--truth", "t.csv"], "2 files need 2 --tune-on, got 1"),
        (["--tune-on", "a", "--tune-on", "b", "--truth", "t", "--weights", "1,2"], "or found with --tune-on"),
        (["--method", "wsum", "--norm", "rank"], "wsum needs --weights. --tune-on FILE"),
        (["--method", "rbc"], "rbc needs --param phi=NUMBER. --tune-on FILE"),
        (["--method", "wsum", "--norm", "rank", "--weights", "1,nan"], "wsum gives nan for item"),
        (["--missing", "error"], "b.csv has no list for 1 of the users of "),
        (["--missing", "error"], "such as 'u2'. --missing empty counts"),
        (["--set", "ties=given"], "those of the metric of --tune-on"),
        (["--method", "comb_sum"], "b.csv has none. Pass"),
    ],
)  # fmt: skip
def test_what_does_not_go_is_said(command, files, options, words):
    result = command("fuse", files / "a.csv", files / "b.csv", *options)
    assert result.exit_code != 0
    assert words in result.output


def test_one_file_is_not_fused(command, files):
    result = command("fuse", files / "a.csv")
    assert (result.exit_code, "Name two files or more" in result.output) == (2, True)


def test_an_input_is_not_overwritten(command, files):
    result = command("fuse", files / "a.csv", files / "b.csv", "-o", files / "a.csv")
    assert "would overwrite an input file" in result.output


def test_a_model_is_fused_with_lists(command, files):
    matrix = [[5.0, 4.0, 3.0], [1.0, 2.0, 3.0], [1.0, 1.0, 2.0]]
    model = recsys.Scores(matrix, user_ids=["u1", "u2", "u3"], item_ids=["a", "b", "c"])
    path = save_model(files / "m.npz", model)
    (files / "train.csv").write_text("user,item\nu1,a\nu9,c\n")
    fused = ("fuse", files / "a.csv", path, "-o", files / "fused.csv")
    result = command(*fused, "--train", files / "train.csv")
    assert result.exit_code == 0, result.output
    expected = recsys.fuse(
        [files / "a.csv", recsys.recommend(model, 2, users=["u1", "u2"], seen={"u1": ["a"]})], "rrf"
    )
    ours = recsys.read_file(files / "fused.csv", "lists")
    assert ours.to_frame().equals(expected.to_frame())
    assert "what users had before is ranked, too; --train FILE" in command(*fused, "-k", "1").stderr
    two = command("fuse", path, path, "-k", "1", "--train", files / "train.csv")
    assert [line.split(",")[:2] for line in two.stdout.splitlines()[1:]] == [
        ["u1", "b"],
        ["u2", "c"],
        ["u3", "c"],
    ]
    assert "-k N says how many" in command("fuse", path, path).stderr
    assert "for models among the files" in command("fuse", files / "a.csv", files / "b.csv", "-k", "3").stderr
    assert (
        "recsys.recommend makes its lists"
        in command(
            *fused, "--tune-on", path, "--tune-on", path, "--truth", files / "truth.csv", "--method", "wsum"
        ).stderr
    )


def test_files_that_share_no_user_are_told(command, files):
    (files / "other.csv").write_text(A.replace("u1", "1").replace("u2", "2"))
    result = command("fuse", files / "a.csv", files / "other.csv")
    assert result.exit_code == 0
    assert f"warning: none of the 2 users of {files / 'a.csv'} have a list in another run" in result.stderr
