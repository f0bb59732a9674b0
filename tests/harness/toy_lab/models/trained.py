"""The models that a config names: of each its width, for there is nothing to train."""


def resolve(models, label, *, retrain=False, progress=None):
    return {name: model.width for name, model in models}
