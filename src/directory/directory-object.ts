import { DurableObject } from 'cloudflare:workers';
import type { Config, GroupConfig } from '../contract/config.ts';
import type {
  AuditEntry,
  DirectoryRpc,
  ListedPool,
  ReplaceAnswer,
  Snapshot,
} from '../contract/directory-rpc.ts';
import type { Env } from '../contract/env.ts';
import type { GroupDefinition } from '../contract/group-rpc.ts';
import { poolOf, takesCalls, type PlacedPool } from '../contract/pool.ts';
import { changeBetween, poolsToTell } from './changes.ts';
import { DirectoryStore } from './store.ts';

/** Pushes in flight at once. More would only queue up on the way out. */
const PUSHES_AT_ONCE = 32;

/**
 * The one object that holds the configuration, its audit log and the list of pools. It stores and
 * tells; what a configuration may say is checked before it gets here.
 */
export class DirectoryObject extends DurableObject<Env> implements DirectoryRpc {
  readonly #store: DirectoryStore;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#store = new DirectoryStore(ctx.storage.sql);
  }

  async snapshot(known: number | null): Promise<Snapshot | null> {
    const { version, config } = this.#store.current;
    if (version === known) return null;
    return { version, config, fingerprintKey: this.#store.fingerprintKey };
  }

  async definition(group: string): Promise<GroupDefinition> {
    return this.#definition(group);
  }

  async replace(
    config: Config,
    expected: number,
    actor: string,
    action: string,
  ): Promise<ReplaceAnswer> {
    const before = this.#store.current;
    if (before.version !== expected) return { kind: 'conflict', version: before.version };
    const version = before.version + 1;
    const change = changeBetween(before.config, config);
    this.#store.write(
      {
        version,
        routingVersion: change.routingMoved ? version : before.routingVersion,
        config,
      },
      { at: new Date().toISOString(), version, actor, action },
    );
    for (const pool of change.retired) this.#store.list(pool);
    const pools = poolsToTell(change, before.config, config, this.#store.pools());
    this.ctx.waitUntil(this.#tell(pools));
    return { kind: 'replaced', version };
  }

  async list(pool: ListedPool): Promise<void> {
    this.#store.list({ ...pool, jurisdiction: this.#jurisdictionOf(pool.group) });
  }

  async unlist(pool: ListedPool): Promise<void> {
    this.#store.unlist(pool, this.#jurisdictionOf(pool.group));
  }

  async pools(): Promise<PlacedPool[]> {
    return this.#store.pools();
  }

  async audit(limit: number): Promise<AuditEntry[]> {
    return this.#store.audit(limit);
  }

  #definition(name: string): GroupDefinition {
    const { version, routingVersion } = this.#store.current;
    const group = this.#group(name);
    return {
      version,
      routingVersion,
      config: group === undefined ? null : JSON.stringify(group),
    };
  }

  #group(name: string): GroupConfig | undefined {
    return this.#store.current.config.groups.find((group) => group.name === name);
  }

  #jurisdictionOf(name: string): GroupConfig['jurisdiction'] {
    return this.#group(name)?.jurisdiction ?? null;
  }

  async #tell(pools: readonly PlacedPool[]): Promise<void> {
    const rest = pools.values();
    const worker = async (): Promise<void> => {
      for (const pool of rest) await this.#tellOne(pool);
    };
    await Promise.all(Array.from({ length: PUSHES_AT_ONCE }, worker));
  }

  /** Pushes what holds at this moment, which may be newer than the change that asked for it. */
  async #tellOne(pool: PlacedPool): Promise<void> {
    const place = {
      location: this.#group(pool.group)?.location ?? null,
      jurisdiction: pool.jurisdiction ?? null,
    };
    try {
      const stub = poolOf(this.env, pool.group, pool.partition, place);
      await stub.reconfigure(this.#definition(pool.group));
      // An own object that `replace` put on the list does not know that it stands there.
      if (takesCalls(pool, this.#store.current.config)) return;
      const { in_use, cooling, queued } = await stub.status();
      if (in_use + cooling + queued === 0) this.#store.drop(pool);
    } catch {
      // It reads the directory by itself as soon as a ticket brings it the newer version.
    }
  }
}
