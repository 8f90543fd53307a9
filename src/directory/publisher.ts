import type { ConfigSnapshot } from '../contract/rpc/directory-rpc.ts';
import { storeSnapshot } from '../config/stored-snapshot.ts';
import { snapshotStoreOf, type Env } from '../env.ts';
import { pause } from '../runtime/background.ts';
import { logEvent } from '../runtime/log.ts';
import { steadyClock } from '../runtime/steady-clock.ts';

/** Minimum time between two writes. The store accepts one write per second and key. */
const WRITE_EVERY_MS = 1_000;

/** Minimum time between two repairs. The store may return the previous value for that long. */
const REPAIR_EVERY_MS = 60_000;

/**
 * Maintains the copy of the configuration that new isolates read. A lost write is repaired when an isolate reports a
 * missing or outdated copy.
 */
export class Publisher {
  readonly #env: Env;
  readonly #snapshot: () => ConfigSnapshot;
  readonly #waitUntil: (work: Promise<unknown>) => void;
  #isWriting = false;
  #repairedAt = -Infinity;
  /** Tag of the last written copy, or of the one from before this instance. Isolates report if that was not written. */
  #written: string | undefined;

  constructor(
    env: Env,
    snapshot: () => ConfigSnapshot,
    waitUntil: (work: Promise<unknown>) => void,
  ) {
    this.#env = env;
    this.#snapshot = snapshot;
    this.#waitUntil = waitUntil;
    this.#written = snapshot().tag;
  }

  /** Writes the copy if it changed. */
  publish(): void {
    if (this.#isWriting || snapshotStoreOf(this.#env) === null) return;
    const { version, tag } = this.#snapshot();
    // Version 0 is not published: the empty configuration would allow every request.
    if (version === 0 || tag === this.#written) return;
    this.#isWriting = true;
    this.#waitUntil(this.#write());
  }

  /** Writes the copy again because an isolate found another one, or none (null). */
  repair(found: string | null): void {
    const now = steadyClock.now();
    if (found === this.#snapshot().tag || now - this.#repairedAt < REPAIR_EVERY_MS) return;
    this.#repairedAt = now;
    this.#written = undefined;
    this.publish();
  }

  async #write(): Promise<void> {
    const snapshot = this.#snapshot();
    this.#written = snapshot.tag;
    try {
      await storeSnapshot(this.#env, snapshot);
    } catch (error) {
      logEvent('snapshot_unwritten', { error: String(error) });
    }
    await pause(WRITE_EVERY_MS);
    this.#isWriting = false;
    this.publish();
  }
}
