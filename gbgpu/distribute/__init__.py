"""Where rows live and how bytes move between devices."""
