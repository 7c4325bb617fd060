"""Tests of an Airflow that ends with the last of them (the scope `package`): at rest it takes CPU time, too."""
