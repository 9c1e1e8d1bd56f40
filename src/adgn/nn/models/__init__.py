"""One file per method; importing this package registers all of them."""

from adgn.nn.models.adgn import ADGN
from adgn.nn.models.appnp import APPNP
from adgn.nn.models.cgnn import CGNN
from adgn.nn.models.cheb import ChebNet
from adgn.nn.models.dagnn import DAGNN
from adgn.nn.models.dgc import DGC
from adgn.nn.models.egnn import EGNN
from adgn.nn.models.gat import GAT
from adgn.nn.models.gcn import GCN
from adgn.nn.models.gcnii import GCNII
from adgn.nn.models.gde import GDE
from adgn.nn.models.geomgcn import GeomGCN
from adgn.nn.models.gesn import GESN
from adgn.nn.models.ggcn import GGCN
from adgn.nn.models.ggnn import GGNN
from adgn.nn.models.gin import GIN
from adgn.nn.models.gprgnn import GPRGNN
from adgn.nn.models.grand import GRAND
from adgn.nn.models.graphcon import GraphCON
from adgn.nn.models.graphsage import GraphSAGE
from adgn.nn.models.h2gcn import H2GCN
from adgn.nn.models.mlp import MLP
from adgn.nn.models.mpssm import MPSSM
from adgn.nn.models.pairnorm import PairNormGCN
from adgn.nn.models.pathgcn import PathGCN
from adgn.nn.models.pdegcn import PDEGCN
from adgn.nn.models.phdgn import PHDGN
from adgn.nn.models.sgc import SGC
from adgn.nn.models.sonar import SONAR
from adgn.nn.models.stable_cheb import StableCheb
from adgn.nn.models.swan import SWAN

__all__ = ["ADGN", "APPNP", "CGNN", "DAGNN", "DGC", "EGNN", "GAT", "GCN", "GCNII", "GDE"]
__all__ += ["GESN", "GGNN", "GIN", "GPRGNN", "GRAND", "H2GCN", "MLP", "MPSSM", "PDEGCN", "PHDGN"]
__all__ += ["SGC", "SONAR", "SWAN", "ChebNet", "GraphCON", "GraphSAGE", "PairNormGCN", "PathGCN"]
__all__ += ["StableCheb"]
__all__ += ["GGCN", "GeomGCN"]
