"""The ways in which a sampler of derivations moves, for tests of any model that has them."""


def local(sampler, iteration):
    sampler.local_sweep(iteration)


def blocked(batch):
    return lambda sampler, iteration: sampler.blocked_sweep(iteration, batch=batch)


def types(sampler, iteration):
    """Cutting and joining in all places at once; alone it does not reach every state."""
    sampler.type_sweep(iteration, 12)
    if iteration % 2:
        sampler.local_sweep(iteration)
