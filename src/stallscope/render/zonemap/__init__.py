"""The zone map: zones as columns, nodes as boxes, ranks as cells, edges by verdict and by crossing."""
