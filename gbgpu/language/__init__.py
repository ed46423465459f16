"""What a user writes: nodes, masks, indices, updates; Vector, Matrix, Scalar, aggregators."""
