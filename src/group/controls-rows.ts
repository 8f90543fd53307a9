import { emptyControls, type Controls } from '../core/controls.ts';
import type { InstantMs } from '../core/words/ids.ts';
import type { GroupStore } from './store.ts';

/** How long, while the pool is in use, what grows with models, keys and agents is not written again. */
const TALLIES_EVERY_MS = 10_000;

/** The part of the controls that would be large in a row that is written with every grant. */
interface Tallies {
  readonly factors: Controls['factors'];
  readonly keys: Controls['spend']['keys'];
  readonly agents: Controls['spend']['agents'];
}

/**
 * The controls of a pool in two rows. What limits hold by is written at once, with the leases. What is
 * learned of models and counted by key and agent follows within some seconds, and is short of these after
 * a reset.
 */
export class ControlsRows {
  readonly #store: GroupStore;
  #talliesAt = 0;

  constructor(store: GroupStore) {
    this.#store = store;
  }

  /** Reads the rows. What an older release did not know begins empty. */
  load(now: InstantMs): Controls {
    const empty = emptyControls(now);
    const controls = parse<Controls>(this.#store.recall('controls'));
    const { factors, ...ofSpend } = parse<Tallies>(this.#store.recall('tallies'));
    return {
      ...empty,
      ...controls,
      ceiling: { ...empty.ceiling, ...controls.ceiling },
      spend: { ...empty.spend, ...controls.spend, ...ofSpend },
      factors: factors ?? empty.factors,
    };
  }

  write(controls: Controls, isInUse: boolean, now: InstantMs): void {
    const { factors, spend, ...rest } = controls;
    const { keys, agents, ...sums } = spend;
    this.#store.remember('controls', JSON.stringify({ ...rest, spend: sums }));
    if (isInUse && now - this.#talliesAt < TALLIES_EVERY_MS) return;
    this.#talliesAt = now;
    const tallies: Tallies = { factors, keys, agents };
    this.#store.remember('tallies', JSON.stringify(tallies));
  }
}

function parse<Row>(row: string | null): Partial<Row> {
  return row === null ? {} : (JSON.parse(row) as Partial<Row>);
}
