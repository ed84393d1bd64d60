"""Classes of other distributions that implement an SPI: how they are named, loaded and called."""
