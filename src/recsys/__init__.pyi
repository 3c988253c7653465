# Every public name of `recsys`: the one table. Type checkers and editors read it, and so does `__init__.py`.
#     from recsys.MODULE import NAME as NAME    a function or a class
#     from .ROOM import MODULE as MODULE        a module with a vocabulary of its own: `recsys.splits`

from recsys.audits import Audit as Audit
from recsys.audits import audit as audit
from recsys.benching.bench import Bench as Bench
from recsys.benching.bench import bench as bench
from recsys.comparison.compare import Comparison as Comparison
from recsys.comparison.compare import compare as compare
from recsys.comparison.conformance import Conformance as Conformance
from recsys.comparison.conformance import conform as conform
from recsys.comparison.explain import explain as explain
from recsys.comparison.gate import Gate as Gate
from recsys.comparison.gate import gate as gate
from recsys.comparison.history import history as history
from recsys.comparison.identify import Identification as Identification
from recsys.comparison.identify import identify as identify
from recsys.comparison.race import Race as Race
from recsys.comparison.race import race as race
from recsys.comparison.rank import Ranks as Ranks
from recsys.comparison.rank import rank as rank
from recsys.conventions.decisions import Conventions as Conventions
from recsys.evaluation.bounds import Bounds as Bounds
from recsys.evaluation.candidates import Candidates as Candidates
from recsys.evaluation.candidates import evaluate_candidates as evaluate_candidates
from recsys.evaluation.evaluate import evaluate as evaluate
from recsys.evaluation.evaluate import recommend as recommend
from recsys.evaluation.fusion_tuning import FusionTuning as FusionTuning
from recsys.evaluation.fusion_tuning import tune_fusion as tune_fusion
from recsys.evaluation.in_pieces.evaluator import Evaluator as Evaluator
from recsys.evaluation.ratings import evaluate_ratings as evaluate_ratings
from recsys.evaluation.results import Evaluation as Evaluation
from recsys.evaluation.results import load as load
from recsys.evaluation.single import score_list as score_list
from recsys.evaluation.stopping import StopWhen as StopWhen
from recsys.evaluation.uncertainty import Intervals as Intervals
from recsys.inputs import read_interactions as read_interactions
from recsys.inputs import read_lists as read_lists
from recsys.inputs.files import read_file as read_file
from recsys.inputs.titles import titles as titles
from recsys.kernels import show_backends as show_backends
from recsys.metrics import metric as metric
from recsys.ranks.fusion import fuse as fuse
from recsys.ranks.sources import Factors as Factors
from recsys.ranks.sources import Scores as Scores
from recsys.ranks.sources import from_model as from_model
from recsys.ranks.sources import read_factors as read_factors
from recsys.records.arrays import Interactions as Interactions
from recsys.records.arrays import Lists as Lists
from recsys.records.facts import Caution as Caution
from recsys.splits import split as split
from recsys.stats.online_experiments import ab as ab

from . import analysis as analysis
from . import audits as audits
from . import cf as cf
from . import conventions as conventions
from . import debias as debias
from . import errors as errors
from . import metrics as metrics
from . import models as models
from . import report as report
from . import spark as spark
from . import splits as splits
from . import stats as stats
from .benching import studies as studies
from .evaluation import adapters as adapters
from .inputs import files as files
from .models import baselines as baselines
from .models import callbacks as callbacks
from .models import rerankers as rerankers
from .ranks import negatives as negatives
from .splits import datasets as datasets
from .stats import sampled as sampled

__version__: str
