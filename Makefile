# Ferry: everything a clone needs, made inside the checkout in ignored folders (.venv .kafka .spark .airflow .ferry).
# `make help` lists the targets. Each step leaves a stamp, so a second run has nothing to do.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

BIN := .venv/bin
WHEELS := dist
KAFKA := 4.3.0
OLD_KAFKA := 3.9.1
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$python; break; fi; done)
# WORKERS=n: processes that share the tests, each with brokers of its own. Pure tests take a core each: two by default;
# those with brokers also wait: three.
DEBIAN_PACKAGES := tools/debian-packages.txt
# What a second seed changes: Hypothesis, and the moments of kills.
RANDOM_TESTS := tests/pure tests/kafka/chaos

INSTALLED := .venv/.installed
KERBEROS := .venv/.kerberos
JARS := .kafka/$(KAFKA)/.complete .kafka/$(OLD_KAFKA)/.complete
ARCHIVE := .spark/ferry.jsa
KAFKA_ARCHIVES := .kafka/$(KAFKA)/ferry.jsa .kafka/$(OLD_KAFKA)/ferry.jsa
AIRFLOW := .airflow/.ready

export AIRFLOW_HOME := $(CURDIR)/.airflow
# Images of containers set it. Without cached bytecode each process compiles Ferry, and pytest rewrites all tests, again.
export PYTHONDONTWRITEBYTECODE :=

say = @printf '\033[1m==> %s\033[0m\n' "$(1)"
missing = { echo "$(1)" >&2; exit 2; }
pip_install = $(BIN)/python -m pip install --quiet --disable-pip-version-check --retries 10 --constraint constraints.txt
need_java = version=$$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' || true); \
	[ "$${version:-0}" -ge 17 ] \
	|| $(call missing,Java 17 or newer is missing (found: $${version:-none}): install it$(,) on Debian with make prerequisites.)
run_soak = HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -m soak $(ARGS)
, := ,

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

.PHONY: setup
setup: $(INSTALLED) $(JARS) $(KAFKA_ARCHIVES) $(ARCHIVE) $(AIRFLOW) ## Prepare everything; leaves a working .venv/bin/ferry

$(INSTALLED): pyproject.toml constraints.txt
	$(call say,Installing Ferry and its libraries into .venv (minutes the first time))
	@[ -n "$(PYTHON)" ] \
		|| $(call missing,Python 3.11 or newer is missing: install it$(,) on Debian with make prerequisites.)
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv \
		|| $(call missing,$(PYTHON) cannot make virtual environments: install python3-venv$(,) on Debian with make prerequisites.)
	@$(pip_install) --editable '.[spark,airflow,dev]'
	@touch $@

# Apart, because it needs a compiler and Kerberos' own libraries. Without it only the tests that log in by it fail, and
# the next `make test` tries again.
$(KERBEROS): $(INSTALLED)
	$(call say,Building the library for Kerberos)
	@tools/system_packages.sh $(PYTHON)
	@if $(pip_install) --editable '.[kerberos]'; then touch $@; else \
		echo "The library for Kerberos (gssapi) cannot be built. The tests that need it will fail." >&2; fi

.kafka/%/.complete: docker/kafka/pom.xml
	$(call say,Fetching the jars of Kafka $* with Maven into .kafka/$*)
	@$(need_java)
	@command -v mvn >/dev/null \
		|| $(call missing,Maven is missing: install the command mvn$(,) on Debian with make prerequisites.)
	@rm -rf .kafka/$*
	@mvn --quiet --batch-mode --file docker/kafka/pom.xml dependency:copy-dependencies -Dkafka.version=$* \
		$(if $(filter $(OLD_KAFKA),$*),,--activate-profiles log4j2) \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/.kafka/$*
	@touch $@

.kafka/%/ferry.jsa: .kafka/%/.complete | $(INSTALLED)
	$(call say,Running a broker of Kafka $* to archive its Java classes in .kafka/$* (later ones start for less))
	@$(need_java)
	@$(BIN)/python -m ferry.dev.kafka_archive $*

$(ARCHIVE): $(INSTALLED) tools/spark_training_job.py
	$(call say,Running a small Spark job to archive its Java classes in .spark (later jobs start in half the time))
	@$(need_java)
	@$(BIN)/python -m ferry.dev.spark_archive .spark tools/spark_training_job.py
	@touch $@

$(AIRFLOW): $(INSTALLED)
	$(call say,Preparing the Airflow home .airflow)
	@$(BIN)/python -m ferry_airflow.setup --local $(@D) >$(@D).log 2>&1 || { cat $(@D).log >&2; exit 2; }
	@mv $(@D).log $(@D)/setup.log
	@touch $@

.PHONY: check
check: $(INSTALLED) ## Look at the code without running it: ruff, mypy, import contracts, documents
	$(call say,Checking style)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	$(call say,Checking types)
	@$(BIN)/mypy
	$(call say,Checking that imports go downward)
	@$(BIN)/lint-imports --no-logo
	$(call say,Checking the links of the documents)
	@$(BIN)/python tools/check_docs.py
	@$(BIN)/python tools/docs_site.py --check
	$(call say,Checking the words)
	@$(BIN)/python tools/check_words.py
	$(call say,Checking that the schemas are what the forms say)
	@$(BIN)/python tools/schemas.py --check

.PHONY: wheel
wheel: $(INSTALLED) ## Build the wheel into dist, to install it where Airflow or Spark is
	$(call say,Building the wheel into $(WHEELS))
	@rm -f $(WHEELS)/ferry_replicator-*.whl
	@$(BIN)/python -m build --wheel --no-isolation --quiet --outdir $(WHEELS)
	@ls $(WHEELS)/ferry_replicator-*.whl

.PHONY: docs
docs: $(INSTALLED) ## Build the site of the documents into build/site; it needs no network
	$(call say,Building the site of the documents)
	@$(BIN)/python tools/docs_site.py

.PHONY: quick
quick: $(INSTALLED) ## Run the pure tests but the slow ones: no broker, Java, browser or process; FILE=src/ferry/... runs the nearest of that file, for seconds
	$(call say,Running the quick tests)
	@tests=$$($(BIN)/python tools/tests_of.py $(FILE)) \
		&& FERRY_SEED=$${FERRY_SEED:-1} HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -m "not slow and not extra and not soak" -q -n $(if $(FILE),0,$(or $(WORKERS),2)) $$tests $(ARGS)

.PHONY: sentences
sentences: $(INSTALLED) ## Write the sentences that tests compare (tests/sentences): read the diff; ARGS="tests/pure/config" writes some
	$(call say,Writing the sentences)
	@$(BIN)/python -m pytest -q -n $(or $(WORKERS),2) -m "golden and not soak" --write-sentences \
		$(or $(ARGS),$$(grep -rlw golden tests --include='test_*.py'))
	@git status --short tests/sentences

.PHONY: test
test: setup $(KERBEROS) ## Run the tests of all guarantees, verbs and faults on real brokers, Spark and Airflow; ARGS="tests/kafka/dev -k kill" runs some, WORKERS=0 in one process
	$(call say,Running the tests)
	@$(need_java)
	@tools/system_packages.sh $(PYTHON)
	@FERRY_SEED=$${FERRY_SEED:-1} HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -n $(or $(WORKERS),3) $(ARGS)
	@$(if $(ARGS),:,$(BIN)/python -m tests.durations)

.PHONY: test-all
test-all: setup $(KERBEROS) ## Run every test there is, the pure ones and chaos with two seeds, then the soak (hours); ARGS="tests/spark" runs some, once
	$(call say,Running all tests but the soak: Kafka $(KAFKA)$(,) and $(OLD_KAFKA) where a test asks for it)
	@$(need_java)
	@tools/system_packages.sh $(PYTHON)
	@trap 'exit 130' INT; failed=; \
	$(BIN)/python -m pytest -n $(or $(WORKERS),3) -m "not soak" $(ARGS) || failed="tests"; \
	$(if $(ARGS),,FERRY_SEED=$(if $(FERRY_SEED),$$(($(FERRY_SEED) + 1))) $(BIN)/python -m pytest -n $(or $(WORKERS),2) $(RANDOM_TESTS) || failed="$$failed second-seed"; \
	$(run_soak) || failed="$$failed soak";) \
	[ -z "$$failed" ] || $(call missing,Failed: $$failed)

.PHONY: demo
demo: setup ## Copy about 1 GB between two clusters by Airflow and Spark; KEEP=1 leaves all running
	$(call say,Running the demo)
	@$(need_java)
	@$(BIN)/python -m ferry_airflow.demo $(if $(KEEP),--keep)

.PHONY: drill
drill: setup ## A shadow drill of the demo's clusters, of a kept demo if one is running; ends with its report
	$(call say,Rehearsing a failover)
	@$(need_java)
	@$(BIN)/python -m ferry_airflow.demo --drill

.PHONY: pictures
pictures: setup ## Take the pictures of the page that docs/page-pictures.md and docs/tutorial.md show again (half an hour)
	$(call say,Letting flows run while a browser takes the pictures)
	@$(need_java)
	@$(BIN)/python tools/pictures.py

.PHONY: bench
bench: setup ## Measure side by side with MirrorMaker 2
	$(call say,Running the bench)
	@$(need_java)
	@$(BIN)/python bench/run.py $(ARGS)

.PHONY: soak
soak: setup $(KERBEROS) ## Run the long randomised tests (hours)
	$(call say,Running the soak tests)
	@$(need_java)
	@$(run_soak)

.PHONY: mutants
mutants: $(INSTALLED) ## Put plausible faults into the code and see whether the tests notice; ARGS="write copy" runs some
	$(call say,Putting faults into a copy of the code)
	@$(BIN)/python tools/mutants.py $(ARGS)

.PHONY: clean
clean: ## Stop the local clusters and delete what make created
	$(call say,Stopping local clusters and deleting .venv .kafka .spark .airflow .ferry .demo and caches)
	@if [ -x $(BIN)/python ] && [ -d .ferry/dev ]; then $(BIN)/python -m ferry.dev down --delete; fi
	@rm -rf .venv .kafka .spark .airflow .airflow.log .ferry .demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: prerequisites
prerequisites: ## Install the Debian packages that set-up and tests need
	$(call say,Installing the packages of $(DEBIAN_PACKAGES))
	@command -v apt-get >/dev/null \
		|| $(call missing,This is not Debian: install what $(DEBIAN_PACKAGES) names by your own package manager.)
	@$$([ "$$(id -u)" = 0 ] || echo sudo) env DEBIAN_FRONTEND=noninteractive \
		apt-get install --yes --no-install-recommends \
		$$(sed 's/#.*//' $(DEBIAN_PACKAGES))
