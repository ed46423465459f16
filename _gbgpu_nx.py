def get_info():
    return {}
