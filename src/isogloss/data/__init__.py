"""Floor 1: corpora and formats, one per file, read into examples; the built-in languages."""

from isogloss.data.bible import Bible
from isogloss.data.bitext import Bitext
from isogloss.data.cad_nli import CadNli
from isogloss.data.corpora import Corpus
from isogloss.data.mlqa import Mlqa
from isogloss.data.mrpc import Mrpc
from isogloss.data.multinli import MultiNli
from isogloss.data.pawsx import PawsX
from isogloss.data.rawtext import RawText
from isogloss.data.sick import Sick
from isogloss.data.snli import Snli
from isogloss.data.squad import Squad
from isogloss.data.tydiqa import TydiQa
from isogloss.data.ud import Ud
from isogloss.data.udpos import UdPos
from isogloss.data.wikiann import WikiAnn
from isogloss.data.xnli import Xnli

_ALL: tuple[Corpus, ...] = (
    Bible(),
    Bitext(),
    CadNli(),
    Mlqa(),
    Mrpc(),
    MultiNli(),
    PawsX(),
    RawText(),
    Sick(),
    Snli(),
    Squad(),
    TydiQa(),
    Ud(),
    UdPos(),
    WikiAnn(),
    Xnli(),
)

CORPORA: dict[str, Corpus] = {corpus.name: corpus for corpus in _ALL}
"""All corpora by name, with the default of every field: one line for each file that holds one."""
