"""Layers, models, pooling, functions on graphs and transforms of torch_geometric, each over one small graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_geometric as pyg
from torch import Tensor
from torch_geometric import metrics, nn, utils
from torch_geometric.data import Batch, Data, HeteroData

DEVICE = "cuda"
NODES, EDGES, WIDTH, OUT, RELATIONS = 12, 40, 8, 6, 3


class Graph:
    """A random graph on the device, undirected, without loops, in two parts of equal size."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        row, column = torch.randint(NODES, (2, EDGES))
        column = (column + (column == row)) % NODES
        pairs = torch.stack([torch.cat([row, column]), torch.cat([column, row])]).unique(dim=1)
        self.edges = pairs.contiguous().to(DEVICE)
        count = pairs.shape[1]
        self.x = torch.rand(NODES, WIDTH, device=DEVICE, requires_grad=True)
        self.position = torch.rand(NODES, 3, device=DEVICE)
        self.weight = torch.rand(count, device=DEVICE)
        self.features = torch.rand(count, WIDTH, device=DEVICE)
        self.types = torch.randint(RELATIONS, (count,), device=DEVICE)
        self.batch = torch.arange(2, device=DEVICE).repeat_interleave(NODES // 2, output_size=NODES)

    @property
    def data(self) -> Data:
        label = torch.arange(NODES, device=DEVICE) % 3
        return Data(self.x.detach(), self.edges, self.features, label, self.position)


def mlp(width: int = WIDTH, out: int = OUT) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(width, 16), torch.nn.ReLU(), torch.nn.Linear(16, out))


# a layer, and what it is called with
LAYERS: dict[str, tuple[Callable[[], Any], Callable[[Any, Graph], Any]]] = {
    **{
        f"{kind}Conv": (
            lambda kind=kind: getattr(nn, f"{kind}Conv")(WIDTH, OUT),
            lambda layer, graph: layer(graph.x, graph.edges),
        )
        for kind in ("SAGE", "GAT", "GATv2", "Transformer", "Graph", "LE", "MF", "ClusterGCN", "SuperGAT", "FiLM")
    },
    **{
        f"{kind}Conv, weighted": (
            lambda kind=kind: getattr(nn, f"{kind}Conv")(WIDTH, OUT),
            lambda layer, graph: layer(graph.x, graph.edges, graph.weight),
        )
        for kind in ("GCN", "ARMA", "TAG", "SG")
    },
    "EGConv": (lambda: nn.EGConv(WIDTH, OUT, num_heads=2), lambda layer, graph: layer(graph.x, graph.edges)),
    "SSGConv": (lambda: nn.SSGConv(WIDTH, OUT, 0.1), lambda layer, graph: layer(graph.x, graph.edges, graph.weight)),
    "ChebConv": (lambda: nn.ChebConv(WIDTH, OUT, 3), lambda layer, graph: layer(graph.x, graph.edges, graph.weight)),
    "APPNP": (lambda: nn.APPNP(3, 0.1), lambda layer, graph: layer(graph.x, graph.edges)),
    "GINConv": (lambda: nn.GINConv(mlp(), train_eps=True), lambda layer, graph: layer(graph.x, graph.edges)),
    "GINEConv": (lambda: nn.GINEConv(mlp()), lambda layer, graph: layer(graph.x, graph.edges, graph.features)),
    "EdgeConv": (lambda: nn.EdgeConv(mlp(2 * WIDTH)), lambda layer, graph: layer(graph.x, graph.edges)),
    "PNAConv": (
        lambda: nn.PNAConv(WIDTH, OUT, ["mean", "max", "std"], ["identity", "amplification"], torch.ones(20).long()),
        lambda layer, graph: layer(graph.x, graph.edges),
    ),
    "RGCNConv": (lambda: nn.RGCNConv(WIDTH, OUT, RELATIONS), lambda layer, graph: layer(graph.x, graph.edges, graph.types)),
    "RGCNConv, bases": (
        lambda: nn.RGCNConv(WIDTH, OUT, RELATIONS, num_bases=2),
        lambda layer, graph: layer(graph.x, graph.edges, graph.types),
    ),
    "FastRGCNConv": (
        lambda: nn.FastRGCNConv(WIDTH, OUT, RELATIONS),
        lambda layer, graph: layer(graph.x, graph.edges, graph.types),
    ),
    "RGATConv": (lambda: nn.RGATConv(WIDTH, OUT, RELATIONS), lambda layer, graph: layer(graph.x, graph.edges, graph.types)),
    "NNConv": (
        lambda: nn.NNConv(WIDTH, OUT, mlp(WIDTH, WIDTH * OUT)),
        lambda layer, graph: layer(graph.x, graph.edges, graph.features),
    ),
    "CGConv": (lambda: nn.CGConv(WIDTH, WIDTH), lambda layer, graph: layer(graph.x, graph.edges, graph.features)),
    "GMMConv": (lambda: nn.GMMConv(WIDTH, OUT, WIDTH, 2), lambda layer, graph: layer(graph.x, graph.edges, graph.features)),
    "FeaStConv": (
        lambda: nn.FeaStConv(WIDTH, OUT, heads=2),
        lambda layer, graph: layer(graph.x, graph.edges),
    ),
    "GCN2Conv": (lambda: nn.GCN2Conv(WIDTH, 0.1), lambda layer, graph: layer(graph.x, graph.x, graph.edges)),
    "DNAConv": (
        lambda: nn.DNAConv(WIDTH, 2),
        lambda layer, graph: layer(torch.stack([graph.x, graph.x], 1), graph.edges),
    ),
    "FAConv": (lambda: nn.FAConv(WIDTH), lambda layer, graph: layer(graph.x, graph.x, graph.edges)),
    "GatedGraphConv": (lambda: nn.GatedGraphConv(WIDTH, 2), lambda layer, graph: layer(graph.x, graph.edges)),
    "ResGatedGraphConv": (lambda: nn.ResGatedGraphConv(WIDTH, OUT), lambda layer, graph: layer(graph.x, graph.edges)),
    "HypergraphConv": (
        lambda: nn.HypergraphConv(WIDTH, OUT),
        lambda layer, graph: layer(graph.x, torch.stack([graph.edges[0], graph.edges[1] % 4])),
    ),
    "PointNetConv": (
        lambda: nn.PointNetConv(mlp(WIDTH + 3)),
        lambda layer, graph: layer(graph.x, graph.position, graph.edges),
    ),
    "PPFConv": (
        lambda: nn.PPFConv(mlp(WIDTH + 4)),
        lambda layer, graph: layer(graph.x, graph.position, graph.position, graph.edges),
    ),
    "GENConv": (lambda: nn.GENConv(WIDTH, OUT, edge_dim=WIDTH), lambda layer, graph: layer(graph.x, graph.edges, graph.features)),
    "GeneralConv": (lambda: nn.GeneralConv(WIDTH, OUT), lambda layer, graph: layer(graph.x, graph.edges)),
    "SimpleConv": (lambda: nn.SimpleConv("median"), lambda layer, graph: layer(graph.x, graph.edges)),
    "WLConv": (lambda: nn.WLConv(), lambda layer, graph: layer(graph.x.argmax(1), graph.edges)),
    "AntiSymmetricConv": (lambda: nn.AntiSymmetricConv(WIDTH), lambda layer, graph: layer(graph.x, graph.edges)),
    "GPSConv": (
        lambda: nn.GPSConv(WIDTH, nn.GCNConv(WIDTH, WIDTH), heads=2),
        lambda layer, graph: layer(graph.x, graph.edges, graph.batch),
    ),
    "DenseGCNConv": (lambda: nn.DenseGCNConv(WIDTH, OUT), lambda layer, graph: layer(*dense(graph))),
    "LGConv": (lambda: nn.LGConv(), lambda layer, graph: layer(graph.x, graph.edges)),
    "MixHopConv": (lambda: nn.MixHopConv(WIDTH, OUT, [0, 1, 2]), lambda layer, graph: layer(graph.x, graph.edges)),
    "AGNNConv": (lambda: nn.AGNNConv(), lambda layer, graph: layer(graph.x, graph.edges)),
    "SignedConv": (lambda: nn.SignedConv(WIDTH, OUT, True), lambda layer, graph: layer(graph.x, graph.edges, graph.edges)),
    "SortAggregation": (
        lambda: nn.SortAggregation(3),
        lambda layer, graph: layer(graph.x, graph.batch),
    ),
    **{
        f"aggregation, {name}": (
            lambda made=made: made(),
            lambda layer, graph: layer(graph.x, graph.batch),
        )
        for name, made in {
            "softmax": lambda: nn.SoftmaxAggregation(learn=True),
            "median": lambda: nn.MedianAggregation(),
            "variance": lambda: nn.VarAggregation(),
            "LSTM": lambda: nn.LSTMAggregation(WIDTH, OUT),
            "GRU": lambda: nn.GRUAggregation(WIDTH, OUT),
            "set to set": lambda: nn.Set2Set(WIDTH, 2),
            "attention": lambda: nn.AttentionalAggregation(mlp(WIDTH, 1)),
            "set transformer": lambda: nn.SetTransformerAggregation(WIDTH, 2, heads=2),
            "equilibrium": lambda: nn.EquilibriumAggregation(WIDTH, OUT, [8], 2),
            "deep sets": lambda: nn.DeepSetsAggregation(mlp(), mlp(OUT)),
            "quantile": lambda: nn.QuantileAggregation([0.25, 0.5]),
            "multi": lambda: nn.MultiAggregation(["mean", "max", "std", "powermean"]),
        }.items()
    },
    **{
        f"norm, {name}": (
            lambda made=made: made(),
            lambda layer, graph: layer(graph.x, graph.batch),
        )
        for name, made in {
            "graph": lambda: nn.GraphNorm(WIDTH),
            "instance": lambda: nn.InstanceNorm(WIDTH, affine=True, track_running_stats=True),
            "layer": lambda: nn.LayerNorm(WIDTH),
            "size": lambda: nn.GraphSizeNorm(),
            "pair": lambda: nn.PairNorm(),
            "mean": lambda: nn.MeanSubtractionNorm(),
        }.items()
    },
    "norm, message": (lambda: nn.MessageNorm(True), lambda layer, graph: layer(graph.x, graph.x)),
    "norm, groups": (lambda: nn.DiffGroupNorm(WIDTH, 3), lambda layer, graph: layer(graph.x)),
    "pool, top k": (
        lambda: nn.TopKPooling(WIDTH, 0.5),
        lambda layer, graph: layer(graph.x, graph.edges, graph.features, graph.batch)[0],
    ),
    "pool, top k by score": (
        lambda: nn.TopKPooling(WIDTH, min_score=0.05),
        lambda layer, graph: layer(graph.x, graph.edges, batch=graph.batch)[0],
    ),
    "pool, attention": (lambda: nn.SAGPooling(WIDTH), lambda layer, graph: layer(graph.x, graph.edges, batch=graph.batch)[0]),
    "pool, edges": (lambda: nn.EdgePooling(WIDTH), lambda layer, graph: layer(graph.x, graph.edges, graph.batch)[0]),
    "pool, ASAP": (lambda: nn.ASAPooling(WIDTH), lambda layer, graph: layer(graph.x, graph.edges, batch=graph.batch)[0]),
    "pool, memory": (lambda: nn.MemPooling(WIDTH, OUT, 2, 3), lambda layer, graph: layer(graph.x, graph.batch)[0]),
    "pool, clusters": (
        lambda: nn.ClusterPooling(WIDTH, threshold=0.4),
        lambda layer, graph: layer(graph.x, graph.edges, graph.batch)[0],
    ),
}  # fmt: skip


def dense(graph: Graph) -> tuple[Tensor, Tensor]:
    x, _ = utils.to_dense_batch(graph.x, graph.batch)
    return x, utils.to_dense_adj(graph.edges, graph.batch)


def learned(module: Any, out: Any) -> None:
    out.float().sum().backward() if out.requires_grad else None


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_learns(name: str) -> None:
    make, call = LAYERS[name]
    layer, graph = make().to(DEVICE), Graph()
    for _ in range(2):
        learned(layer, call(layer, graph))
    layer.eval()
    call(layer, graph)


MODELS: dict[str, Callable[[], Any]] = {
    name: lambda name=name: getattr(nn, name)(WIDTH, 16, 2, OUT, norm="batch", jk="cat")
    for name in ("GCN", "GraphSAGE", "GIN", "GAT", "PNA", "EdgeCNN")
    if name != "PNA"
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_classifies_nodes(name: str) -> None:
    model, graph = MODELS[name]().to(DEVICE), Graph()
    optimizer = torch.optim.Adam(model.parameters())
    labels = graph.data.y
    torch.nn.functional.cross_entropy(model(graph.x, graph.edges), labels).backward()
    optimizer.step()


def test_deeper_models_run() -> None:
    graph = Graph()
    z = torch.randint(1, 10, (NODES,), device=DEVICE)
    nn.GraphUNet(WIDTH, 16, OUT, 2).to(DEVICE)(graph.x, graph.edges).sum().backward()
    nn.AttentiveFP(WIDTH, 16, OUT, WIDTH, 2, 2).to(DEVICE)(
        graph.x, graph.edges, graph.features, graph.batch
    ).sum().backward()
    nn.LightGCN(NODES, 8, 2).to(DEVICE)(graph.edges, graph.edges[:, :5]).sum().backward()
    nn.Node2Vec(graph.edges, 8, 4, 3).to(DEVICE) if pyg.typing.WITH_PYG_LIB or pyg.typing.WITH_TORCH_CLUSTER else None
    nn.SchNet(16, 16, 2, 8, interaction_graph=near).to(DEVICE)(z, graph.position, graph.batch).sum().backward()
    nn.LabelPropagation(2, 0.9)(graph.data.y, graph.edges, mask=z > 5)
    nn.CorrectAndSmooth(2, 0.5, 2, 0.5).correct(
        torch.rand(NODES, 3, device=DEVICE).softmax(1), graph.data.y[z > 5], z > 5, graph.edges
    )
    nn.MetaLayer(EdgeModel(), None, None).to(DEVICE)(graph.x, graph.edges, graph.features)


class EdgeModel(torch.nn.Module):
    def forward(self, source: Tensor, target: Tensor, edge: Tensor, u: Any, batch: Any) -> Tensor:
        return source + target + edge


def near(position: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
    pairs = (torch.cdist(position, position) < 0.8).nonzero().t()
    return pairs, (position[pairs[0]] - position[pairs[1]]).norm(dim=1)


def test_auto_encoders_sample_what_is_not_there() -> None:
    graph = Graph()
    model = nn.VGAE(VariationalEncoder()).to(DEVICE)
    z = model.encode(graph.x, graph.edges)
    (model.recon_loss(z, graph.edges) + model.kl_loss()).backward()
    infomax = nn.DeepGraphInfomax(
        OUT, nn.GCNConv(WIDTH, OUT), lambda z, *_: z.mean(0), lambda x, edges: (x.flip(0), edges)
    )
    infomax = infomax.to(DEVICE)
    infomax.loss(*infomax(graph.x, graph.edges)).backward()


class VariationalEncoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean, self.deviation = nn.GCNConv(WIDTH, OUT), nn.GCNConv(WIDTH, OUT)

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        return self.mean(x, edges), self.deviation(x, edges)


def hetero() -> HeteroData:
    graph, data = Graph(), HeteroData()
    data["author"].x, data["paper"].x = graph.x.detach(), graph.x.detach().flip(0)
    data["author", "writes", "paper"].edge_index = graph.edges
    data["paper", "cites", "paper"].edge_index = graph.edges.flip(0)
    data["paper", "rev_writes", "author"].edge_index = graph.edges.flip(0)
    return data


@pytest.mark.parametrize("name", ["HGTConv", "HANConv", "HeteroConv", "to_hetero"])
def test_graphs_of_several_kinds(name: str) -> None:
    data = hetero()
    if name == "HeteroConv":
        convs = {edge: nn.SAGEConv((WIDTH, WIDTH), OUT) for edge in data.edge_types}
        layer: Any = nn.HeteroConv(convs, aggr="sum")
    elif name == "to_hetero":
        layer = nn.to_hetero(nn.GraphSAGE((-1, -1), 16, 2, OUT), data.metadata())
    else:
        layer = getattr(nn, name)(WIDTH, OUT * 2, data.metadata(), heads=2)
    out = layer.to(DEVICE)(data.x_dict, data.edge_index_dict)
    sum(value.sum() for value in out.values() if value is not None).backward()


FUNCTIONS: dict[str, Callable[[Graph], Any]] = {
    "softmax": lambda g: utils.softmax(g.weight, g.edges[0]),
    "scatter": lambda g: [utils.scatter(g.features, g.edges[0], reduce=how) for how in ("sum", "mean", "max", "mul")],
    "segment": lambda g: utils.segment(g.x, torch.tensor([0, 5, NODES], device=DEVICE), "sum"),
    "degree": lambda g: utils.degree(g.edges[0]),
    "to_dense_batch": lambda g: utils.to_dense_batch(g.x, g.batch),
    "to_dense_adj": lambda g: utils.to_dense_adj(g.edges, g.batch, g.weight),
    "dense_to_sparse": lambda g: utils.dense_to_sparse(utils.to_dense_adj(g.edges, g.batch)),
    "add_self_loops": lambda g: utils.add_self_loops(g.edges, g.features, fill_value="mean"),
    "remaining_self_loops": lambda g: utils.add_remaining_self_loops(g.edges, g.weight),
    "remove_self_loops": lambda g: utils.remove_self_loops(g.edges, g.weight),
    "segregate_self_loops": lambda g: utils.segregate_self_loops(g.edges, g.weight),
    "contains_self_loops": lambda g: utils.contains_self_loops(g.edges),
    "contains_isolated_nodes": lambda g: utils.contains_isolated_nodes(g.edges, NODES),
    "remove_isolated_nodes": lambda g: utils.remove_isolated_nodes(g.edges, g.weight, NODES),
    "is_undirected": lambda g: utils.is_undirected(g.edges, g.weight),
    "to_undirected": lambda g: utils.to_undirected(g.edges, g.weight, reduce="mean"),
    "coalesce": lambda g: utils.coalesce(torch.cat([g.edges, g.edges], 1), torch.cat([g.weight, g.weight])),
    "sort_edge_index": lambda g: utils.sort_edge_index(g.edges, g.weight),
    "subgraph": lambda g: utils.subgraph(torch.arange(5, device=DEVICE), g.edges, g.features, relabel_nodes=True),
    "subgraph of a list": lambda g: utils.subgraph([0, 1, 2, 3], g.edges, num_nodes=NODES),
    "bipartite_subgraph": lambda g: utils.bipartite_subgraph(
        (torch.arange(5, device=DEVICE), torch.arange(6, device=DEVICE)), g.edges, g.features, True
    ),
    "k_hop_subgraph": lambda g: utils.k_hop_subgraph(3, 2, g.edges, relabel_nodes=True),
    "k_hop_subgraph of many": lambda g: utils.k_hop_subgraph(torch.tensor([3, 4], device=DEVICE), 2, g.edges),
    "dropout_edge": lambda g: utils.dropout_edge(g.edges, 0.3, force_undirected=True),
    "dropout_node": lambda g: utils.dropout_node(g.edges, 0.3),
    "dropout_adj": lambda g: utils.dropout_adj(g.edges, g.weight, 0.3),
    "mask_feature": lambda g: utils.mask_feature(g.x, 0.3, mode="row"),
    "add_random_edge": lambda g: utils.add_random_edge(g.edges, 0.3, force_undirected=True),
    "negative_sampling": lambda g: utils.negative_sampling(g.edges, NODES),
    "negative_sampling, dense": lambda g: utils.negative_sampling(g.edges, NODES, method="dense", force_undirected=True),
    "batched_negative_sampling": lambda g: utils.batched_negative_sampling(g.edges, g.batch),
    "structured_negative_sampling": lambda g: utils.structured_negative_sampling(g.edges, NODES),
    "get_laplacian": lambda g: utils.get_laplacian(g.edges, g.weight, "sym"),
    "normalize_edge_index": lambda g: utils.normalize_edge_index(g.edges, NODES),
    "homophily": lambda g: [utils.homophily(g.edges, g.data.y, method=how) for how in ("edge", "node", "edge_insensitive")],
    "assortativity": lambda g: utils.assortativity(g.edges),
    "to_torch_coo_tensor": lambda g: utils.to_torch_coo_tensor(g.edges, g.weight),
    "to_torch_csr_tensor": lambda g: utils.to_torch_csr_tensor(g.edges, g.weight),
    "spmm": lambda g: utils.spmm(utils.to_torch_coo_tensor(g.edges, g.weight), g.x),
    "to_edge_index": lambda g: utils.to_edge_index(utils.to_torch_coo_tensor(g.edges, g.weight)),
    "unbatch": lambda g: [utils.unbatch(g.x, g.batch), utils.unbatch_edge_index(g.edges % 6, g.batch)],
    "cumsum": lambda g: utils.cumsum(g.batch),
    "one_hot": lambda g: utils.one_hot(g.data.y),
    "select": lambda g: utils.select(g.x, g.batch == 0, 0),
    "index_to_mask": lambda g: utils.mask_to_index(utils.index_to_mask(torch.tensor([1, 4], device=DEVICE), NODES)),
    "index_sort": lambda g: utils.index_sort(g.edges[0], NODES),
    "lexsort": lambda g: utils.lexsort([g.edges[0], g.edges[1]]),
    "group_argsort": lambda g: utils.group_argsort(g.weight, g.edges[0]),
    "group_cat": lambda g: utils.group_cat([g.x, g.x], [g.batch, g.batch]),
    "grid": lambda g: utils.grid(3, 3, device=DEVICE),
    "erdos_renyi_graph": lambda g: utils.erdos_renyi_graph(8, 0.3),
    "to_networkx": lambda g: utils.to_networkx(g.data, ["x"], to_undirected=True),
    "to_scipy_sparse_matrix": lambda g: utils.to_scipy_sparse_matrix(g.edges, g.weight),
    "split of links": lambda g: pyg.transforms.RandomLinkSplit(is_undirected=True)(g.data),
    "max_pool_x": lambda g: nn.max_pool_x(g.edges[0][:NODES] % 4, g.x, g.batch),
    "max_pool": lambda g: nn.max_pool(torch.arange(NODES, device=DEVICE) // 2, Batch.from_data_list([g.data])),
    "avg_pool": lambda g: nn.avg_pool(torch.arange(NODES, device=DEVICE) // 2, Batch.from_data_list([g.data])),
    "global pools": lambda g: [pool(g.x, g.batch) for pool in (nn.global_add_pool, nn.global_mean_pool, nn.global_max_pool)],
    "consecutive_cluster": lambda g: nn.pool.consecutive.consecutive_cluster(g.edges[0]),
    "filter_edges": lambda g: nn.pool.connect.FilterEdges()(
        nn.pool.select.SelectOutput(
            torch.arange(5, device=DEVICE), NODES, torch.arange(5, device=DEVICE), 5
        ),
        g.edges,
        g.features,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_a_graph(name: str) -> None:
    FUNCTIONS[name](Graph())


def drop_features(data: Data) -> Data:
    del data.edge_attr
    return data


TRANSFORMS: dict[str, Callable[[], Any]] = {
    "NormalizeFeatures": lambda: pyg.transforms.NormalizeFeatures(),
    "AddSelfLoops": lambda: pyg.transforms.AddSelfLoops(),
    "AddRemainingSelfLoops": lambda: pyg.transforms.AddRemainingSelfLoops(),
    "RemoveIsolatedNodes": lambda: pyg.transforms.RemoveIsolatedNodes(),
    "RemoveDuplicatedEdges": lambda: pyg.transforms.RemoveDuplicatedEdges(),
    "ToUndirected": lambda: pyg.transforms.ToUndirected(),
    "LargestConnectedComponents": lambda: pyg.transforms.LargestConnectedComponents(),
    "LocalDegreeProfile": lambda: pyg.transforms.LocalDegreeProfile(),
    "OneHotDegree": lambda: pyg.transforms.OneHotDegree(30),
    "TargetIndegree": lambda: pyg.transforms.TargetIndegree(),
    "Constant": lambda: pyg.transforms.Constant(),
    "Distance": lambda: pyg.transforms.Distance(),
    "Cartesian": lambda: pyg.transforms.Cartesian(),
    "Spherical": lambda: pyg.transforms.Spherical(),
    "LocalCartesian": lambda: pyg.transforms.LocalCartesian(),
    "Center": lambda: pyg.transforms.Center(),
    "NormalizeScale": lambda: pyg.transforms.NormalizeScale(),
    "NormalizeRotation": lambda: pyg.transforms.NormalizeRotation(),
    "RandomJitter": lambda: pyg.transforms.RandomJitter(0.1),
    "RandomRotate": lambda: pyg.transforms.RandomRotate(30),
    "RandomScale": lambda: pyg.transforms.RandomScale((0.9, 1.1)),
    "RandomFlip": lambda: pyg.transforms.RandomFlip(0),
    "RandomShear": lambda: pyg.transforms.RandomShear(0.1),
    "LinearTransformation": lambda: pyg.transforms.LinearTransformation(torch.eye(3)),
    "TwoHop": lambda: pyg.transforms.TwoHop(),
    "LineGraph": lambda: pyg.transforms.LineGraph(),
    "LaplacianLambdaMax": lambda: pyg.transforms.LaplacianLambdaMax(),
    "AddLaplacianEigenvectorPE": lambda: pyg.transforms.AddLaplacianEigenvectorPE(2),
    "AddRandomWalkPE": lambda: pyg.transforms.AddRandomWalkPE(3),
    "GDC": lambda: pyg.transforms.Compose([drop_features, pyg.transforms.GDC()]),
    "SIGN": lambda: pyg.transforms.SIGN(2),
    "GCNNorm": lambda: pyg.transforms.GCNNorm(),
    "SVDFeatureReduction": lambda: pyg.transforms.SVDFeatureReduction(3),
    "RandomNodeSplit": lambda: pyg.transforms.RandomNodeSplit("random", num_train_per_class=1, num_val=2, num_test=2),
    "RandomLinkSplit": lambda: pyg.transforms.RandomLinkSplit(),
    "HalfHop": lambda: pyg.transforms.Compose([drop_features, pyg.transforms.HalfHop()]),
    "Pad": lambda: pyg.transforms.Pad(20, 200),
    "VirtualNode": lambda: pyg.transforms.VirtualNode(),
    "ToDense": lambda: pyg.transforms.ToDense(20),
    "FeaturePropagation": lambda: pyg.transforms.FeaturePropagation(torch.zeros(NODES, WIDTH, dtype=torch.bool, device=DEVICE)),
    "RootedEgoNets": lambda: pyg.transforms.RootedEgoNets(1),
    "IndexToMask": lambda: pyg.transforms.IndexToMask("y", NODES),
    "ToSparseTensor": lambda: pyg.transforms.ToSparseTensor(layout=torch.sparse_coo),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform(name: str) -> None:
    TRANSFORMS[name]()(Graph().data)


def test_batches_and_loaders() -> None:
    graphs = [Graph().data for _ in range(4)]
    batch = Batch.from_data_list(graphs)
    assert batch.get_example(1).num_nodes == NODES
    assert len(batch.to_data_list()) == 4
    assert batch[torch.tensor([0, 2])][0].num_nodes == NODES
    for part in pyg.loader.DataLoader([graph.cpu() for graph in graphs], batch_size=2):
        nn.global_mean_pool(part.to(DEVICE).x, part.batch)
    assert str(batch).startswith("DataBatch")
    graphs[0].to(DEVICE).validate()
    graphs[0].to(DEVICE).coalesce().subgraph(torch.tensor([0, 1, 2], device=DEVICE))
    assert not graphs[0].has_isolated_nodes()
    graphs[0].is_undirected()


def test_edge_indices_know_their_order() -> None:
    graph = Graph()
    edges = pyg.EdgeIndex(graph.edges, sparse_size=(NODES, NODES)).sort_by("row").values
    edges.get_csr()
    edges.matmul(graph.x)
    nn.GCNConv(WIDTH, OUT).to(DEVICE)(graph.x, edges)


def test_explanations() -> None:
    graph = Graph()
    explainer = pyg.explain.Explainer(
        nn.GCN(WIDTH, 16, 2, 3).to(DEVICE),
        pyg.explain.GNNExplainer(epochs=2),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    explanation = explainer(graph.x, graph.edges, index=3)
    explanation.validate()
    explanation.get_explanation_subgraph()
    pyg.explain.fidelity(explainer, explanation)


def test_metrics() -> None:
    kinds = [metrics.LinkPredPrecision(3), metrics.LinkPredNDCG(3), metrics.LinkPredMAP(3)]
    found = metrics.LinkPredMetricCollection(kinds).to(DEVICE)
    found.update(
        torch.randint(NODES, (4, 3), device=DEVICE), torch.stack([torch.arange(4), torch.arange(4)]).to(DEVICE)
    )
    found.compute()
