def samples(dataset):
    return {"ridge": dataset.distance.min("penalty").values}
