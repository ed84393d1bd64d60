"""What of requests and answers is changed on the way, API by API. Pure but for what is asked."""
