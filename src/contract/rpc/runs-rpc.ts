import type { LeaseOutcome } from '../../core/words/outcome.ts';
import type { GroupConfig } from '../config/config.ts';
import type { ResumeRequest } from './group-rpc.ts';

/** A lease that goes from the call which started a run to the run. */
export interface RunLease {
  /** The lease as its holder tells of it, with how long it is held by then. */
  readonly held: ResumeRequest;
  readonly jurisdiction: GroupConfig['jurisdiction'];
  readonly location: GroupConfig['location'];
  /** The upstream's status of the call. */
  readonly status: number | null;
}

export interface RunRequest {
  /** The upstream's own id of the run. */
  readonly run: string;
  /** How long it may hold its leases. */
  readonly forMs: number;
  readonly leases: readonly RunLease[];
}

/** Objects that an upstream made for a caller. Caller and ids are keyed hashes. */
export interface MadeRequest {
  readonly caller: string;
  readonly ids: readonly string[];
  readonly upstream: string;
}

/**
 * Calls of a Worker to the object that holds the leases of an upstream's runs: no request lives as long as what goes on at
 * the upstream after its answer.
 */
export interface RunsRpc {
  /**
   * Holds leases until the run ends. Asked once more for the same ones, it answers the same. `late`: a pool could not be
   * reached. `no`: it does not, and their call gives them back.
   */
  hold(request: RunRequest): Promise<'held' | 'late' | 'no'>;
  /** The run has ended, as far as the upstream says. One that is not known changes nothing. */
  end(run: string, outcome: LeaseOutcome): Promise<void>;
  /** Notes which upstream made objects that are asked for by their ids. */
  noteMade(request: MadeRequest): Promise<void>;
  /** Finds the upstream that made one of these objects; null: it is not known, or no longer. */
  madeBy(ids: readonly string[]): Promise<string | null>;
}
