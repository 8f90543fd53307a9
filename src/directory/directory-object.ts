import { DurableObject } from 'cloudflare:workers';
import {
  switchesInForce,
  definedGroup,
  keyWeights,
  kindOfLimits,
} from '../routing/implied-groups.ts';
import type { Config, GroupConfig, WebhookConfig } from '../contract/config/config.ts';
import {
  changedFor,
  type AdminAccess,
  type AuditPage,
  type AuditQuery,
  type DirectoryRpc,
  type ListedPool,
  type ReplaceAnswer,
  type ConfigSnapshot,
  type VersionInfo,
  type TemporaryField,
  type TemporaryOrder,
  type StoredPool,
  type PresentPool,
  type Woken,
} from '../contract/rpc/directory-rpc.ts';
import type { AuditEntry } from '../contract/history.ts';
import type { KeylessCaller, RefusalCount, RefusalTotal } from '../contract/reasons.ts';
import type { Warning } from '../contract/attention.ts';
import { WarningList, AccountList, KeylessList, RefusalList } from './reports.ts';
import { jurisdictionOf, type Env } from '../env.ts';
import { POOL_IDLE_MS, type GroupDefinition, type GroupRpc } from '../contract/rpc/group-rpc.ts';
import type { WatchSpan, StoredCosts } from '../contract/rpc/feed-rpc.ts';
import { windowMsOf } from '../runtime/deployment.ts';
import { PresenceList, CostList } from './pool-reports.ts';
import { AUTO_PREFIX } from '../contract/pool-name.ts';
import { poolKey, poolOf, takesCalls, type PlacedPool } from '../routing/pool.ts';
import { isOfCanaryAlone, changesBetween } from '../config/document-changes.ts';
import {
  Alarms,
  AuditLog,
  DirectoryStore,
  packed,
  VersionList,
  type Alarm,
  type Packed,
} from './store.ts';
import { AttentionWatch } from './attention-watch.ts';
import { changeBetween, changedAtWith, ownPoolsToPush, ownSecretsOf } from './changes.ts';
import { Publisher, ConfigPush } from './config-push.ts';
import { BoundedMap } from '../core/parts/bounded-map.ts';
import { pause, mapConcurrently, Timers, steadyClock } from '../runtime/async.ts';
import { logEvent } from '../runtime/log.ts';
import { FailedAttempts } from '../runtime/origin.ts';
import { revertFields, OWN_ACTOR, TemporaryList, type TemporaryEntry } from './temporary-list.ts';
import { PastPools, PoolList } from './pool-list.ts';

/** Maximum requests to pools at once. More would only queue. */
const POOLS_AT_ONCE = 32;

/** Maximum unlisted objects notified of a change. The others read the directory at their next new call. */
const OWN_PUSHED_MAX = 400;

const DEFINITIONS_MAX = 1_000;

/** Delay of writes that no response depends on. */
const WRITE_DELAY_MS = 1_000;

/** How long the dashboards' hub counts as active after a request. It sends one every 5 s. */
const HUB_ACTIVE_MS = 15_000;

const REVERT_RETRY_MS = 5_000;

/** Minimum interval between searches for idle pools of a full group. */
const SWEEP_EVERY_MS = 60_000;

/** Author of version 0, the empty configuration. */
const NO_AUTHOR = { actor: '', action: '' };

/**
 * The one object that holds the configuration, its versions, the audit log and the list of pools. It stores and
 * distributes configurations. Callers validate them first.
 */
export class DirectoryObject extends DurableObject<Env> implements DirectoryRpc {
  readonly #store: DirectoryStore;
  readonly #list: PoolList;
  readonly #presence: PresenceList;
  readonly #costs: CostList;
  readonly #past: PastPools;
  readonly #accounts: AccountList;
  readonly #audit: AuditLog;
  readonly #warnings: WarningList;
  readonly #refusals: RefusalList;
  readonly #keyless: KeylessList;
  readonly #versions: VersionList;
  readonly #temporary: TemporaryList;
  readonly #alarms: Alarms;
  readonly #endAlarm: Alarm;
  #isFlushing = false;
  readonly #timers = new Timers(steadyClock);
  /** What the dashboards' hub wants pools to push. A new instance receives it with the hub's next request. */
  #hub: { readonly span: WatchSpan | null; readonly seenAt: number } = { span: null, seenAt: 0 };
  readonly #attempts = new FailedAttempts();
  readonly #sweptAt = new Map<string, number>();
  readonly #definitions = new BoundedMap<string, GroupDefinition>(DEFINITIONS_MAX);
  readonly #push: ConfigPush;
  readonly #publisher: Publisher;
  readonly #attention: AttentionWatch;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.#store = new DirectoryStore(ctx.storage.sql);
    this.#list = new PoolList(ctx.storage.sql);
    this.#presence = new PresenceList(ctx.storage.sql, env.BOOT_ID ?? '', windowMsOf(env));
    this.#costs = new CostList(ctx.storage.sql);
    this.#past = new PastPools(ctx.storage.sql);
    this.#audit = new AuditLog(ctx.storage.sql);
    this.#versions = new VersionList(ctx.storage.sql);
    this.#accounts = new AccountList(ctx.storage.sql);
    this.#alarms = new Alarms(ctx.storage);
    this.#endAlarm = this.#alarms.of('temporary');
    this.#temporary = new TemporaryList(ctx.storage.sql);
    if (this.#temporary.firstUntil !== null) this.#awaitEnd();
    this.#warnings = new WarningList(ctx.storage.sql);
    this.#refusals = new RefusalList(ctx.storage.sql);
    this.#keyless = new KeylessList(ctx.storage.sql);
    this.#push = new ConfigPush({
      list: this.#list,
      alarm: this.#alarms.of('telling'),
      version: (group) => this.#versionFor(group),
      isResting: (pool) => this.#isResting(pool),
      isOneProcess: env.BOOT_ID !== undefined,
      after: this.#timers.after,
      waitUntil: (work) => ctx.waitUntil(work),
      notify: (pool) => this.#report(pool),
    });
    this.#publisher = new Publisher(
      env,
      () => this.#snapshot(),
      (work) => ctx.waitUntil(work),
    );
    this.#attention = new AttentionWatch({
      env,
      sql: ctx.storage.sql,
      alarm: this.#alarms.of('attention'),
      target: () => this.#store.current.config.webhook,
      isInUse: () => this.#presence.awake(Date.now()).length > 0,
      waitUntil: (work) => ctx.waitUntil(work),
    });
  }

  async snapshot(known: string | null, found?: string | null): Promise<ConfigSnapshot | null> {
    this.#alarms.ensure();
    const snapshot = this.#snapshot();
    if (found !== undefined) this.#publisher.repair(found);
    return known === snapshot.tag ? null : snapshot;
  }

  async definition(group: string): Promise<GroupDefinition> {
    return this.#definition(group);
  }

  async replace(
    config: Config,
    expected: number,
    actor: string,
    action: string,
    orders: readonly TemporaryOrder[] = [],
  ): Promise<ReplaceAnswer> {
    const before = this.#store.current;
    if (before.version !== expected) return { kind: 'conflict', version: before.version };
    const [body, bodyBefore] = await Promise.all([
      packed(config),
      // No change wrote version 0. It is stored so that the first change can be undone.
      expected === 0 ? packed(before.config) : null,
    ]);
    const { version } = this.#store.current;
    if (version !== expected) return { kind: 'conflict', version };
    const at = new Date().toISOString();
    if (bodyBefore !== null) {
      this.#versions.add({ ...NO_AUTHOR, version: expected, at }, bodyBefore, []);
    }
    for (const order of orders) this.#temporary.order(order, actor);
    return { kind: 'replaced', version: this.#replace(config, { at, actor, action }, body) };
  }

  async setUntil(
    order: TemporaryOrder,
    expected: number,
    actor: string,
    action: string,
  ): Promise<ReplaceAnswer> {
    const { version } = this.#store.current;
    if (version !== expected) return { kind: 'conflict', version };
    if (this.#temporary.order(order, actor)) {
      this.#versions.setTemporary(version, this.#temporary.live);
      this.#note({ version, actor, action, changes: [], changes_omitted: 0 });
      this.#awaitEnd();
      this.#publisher.publish();
    }
    return { kind: 'replaced', version };
  }

  /** Puts the next configuration into force in one turn, and notifies pools and dashboards. */
  #replace(config: Config, by: Omit<VersionInfo, 'version'>, body: Packed): number {
    const before = this.#store.current;
    const version = before.version + 1;
    const change = changeBetween(before.config, config);
    this.#store.write({
      version,
      routingVersion: change.routingMoved ? version : before.routingVersion,
      changedAt: changedAtWith(before.changedAt, change, version),
      config,
    });
    this.#temporary.follow(config);
    const isOfCanary = isOfCanaryAlone(before.config, config);
    this.#versions.add({ version, ...by, isOfCanary }, body, this.#temporary.live);
    this.#awaitEnd();
    const { changes, omitted } = changesBetween(before.config, config);
    this.#note({ version, ...by, changes, changes_omitted: omitted });
    for (const pool of change.retired) this.#list.list(pool);
    for (const group of change.unshared) this.#list.unshare(group);
    this.#publisher.publish();
    this.#attention.note();
    this.#dropRetired();
    const own = ownPoolsToPush(change, before.config, config, this.#list.all()).filter(
      // A pool that was never used has no waiters to notify.
      (pool) => this.#presence.has(pool) && !this.#isResting(pool),
    );
    // A failure is harmless: the pool reads the directory before it accepts a new call.
    const pushOwn = (pool: PlacedPool): Promise<unknown> => this.#report(pool).catch(() => {});
    const pushingOwn = mapConcurrently(own.slice(0, OWN_PUSHED_MAX), POOLS_AT_ONCE, pushOwn);
    this.ctx.waitUntil(Promise.all([this.#push.begin(), pushingOwn]));
    return version;
  }

  /** Continues to notify pools, and reverts temporary changes. */
  override async alarm(): Promise<void> {
    await Promise.all([this.#push.round(), this.#revertDue(), this.#attention.look()]);
  }

  /**
   * Reverts the fields whose time has ended, with one version per group. An entry that is gone from the list has been
   * reverted.
   */
  async #revertDue(): Promise<void> {
    try {
      for (;;) {
        const [first, ...others] = this.#temporary.due(Date.now());
        if (first === undefined) break;
        await this.#revertIn([first, ...others.filter(({ group }) => group === first.group)]);
      }
      this.#awaitEnd();
    } catch (error) {
      logEvent('temporary_failed', { error: String(error) });
      this.#endAlarm.set(Date.now() + REVERT_RETRY_MS);
    }
  }

  async #revertIn(due: readonly [TemporaryEntry, ...TemporaryEntry[]]): Promise<void> {
    const before = this.#store.current;
    const { config, action, back, stays } = revertFields(before.config, due, {
      privateUpstreams: this.env.PRIVATE_UPSTREAMS === 'allow',
      jurisdiction: jurisdictionOf(this.env),
    });
    const body = config === null ? null : await packed(config);
    // The configuration changed meanwhile. The next round checks it again.
    if (this.#store.current !== before || !this.#temporary.isUnchanged(due)) return;
    this.#temporary.remove(due);
    const [{ group }] = due;
    const by = { at: new Date().toISOString(), actor: OWN_ACTOR, action };
    if (config === null || body === null) {
      this.#note({ ...by, version: before.version, changes: [], changes_omitted: 0 });
    } else {
      this.#replace(config, by, body);
    }
    logEvent('temporary_ended', { group, back: back.join(', '), not_back: stays.join('; ') });
  }

  #awaitEnd(): void {
    const { firstUntil } = this.#temporary;
    if (firstUntil === null) this.#endAlarm.clear();
    else this.#endAlarm.set(firstUntil);
  }

  async list(pool: ListedPool): Promise<boolean> {
    const placed = { ...pool, jurisdiction: this.#jurisdictionOf(pool.group) };
    // The pool reads its definition after this answer, so it counts as notified.
    const isListed = this.#list.list(placed, this.#versionFor(pool.group));
    if (!isListed) this.#sweep(pool.group);
    this.#publisher.publish();
    return isListed;
  }

  async unlist(pool: PlacedPool, costs?: string): Promise<void> {
    const gone =
      pool.jurisdiction === undefined
        ? this.#list.unlist(pool, this.#jurisdictionOf(pool.group))
        : [pool];
    if (costs !== undefined) {
      for (const one of gone) this.#costs.note({ ...one, costs }, Date.now());
      // The pool reports only once, so a reset must not lose the report.
      this.#costs.flush();
    }
    if (pool.jurisdiction !== undefined) this.#drop(pool);
    this.#publisher.publish();
  }

  async rest(present: PresentPool): Promise<void> {
    const pool = this.#placed(present);
    if (!this.#isKnown(pool)) return;
    this.#costs.note(pool, Date.now());
    this.#presence.rest(pool, Date.now());
    this.#flushSoon();
  }

  async wake(present: PresentPool): Promise<Woken> {
    const pool = this.#placed(present);
    // The pool counts as outdated until it has this answer.
    if (this.#isResting(pool)) this.#list.noteReceived(pool, this.#versionFor(pool.group));
    if (this.#isKnown(pool)) {
      this.#costs.note(pool, Date.now());
      this.#presence.wake(pool);
      this.#attention.note();
      this.#flushSoon();
    }
    const definition = this.#withUse(pool, await this.definition(pool.group));
    const answer = { definition, isListed: this.#list.has(pool) };
    const { span, seenAt } = this.#hub;
    if (span === null || Math.abs(Date.now() - seenAt) > HUB_ACTIVE_MS) return answer;
    return { ...answer, watch: { ...span, key: poolKey(pool) } };
  }

  async presence(): Promise<StoredPool[]> {
    return this.#presence.all(Date.now());
  }

  async costs(period: string, except: readonly string[]): Promise<StoredCosts[]> {
    return this.#costs.of(period, new Set(except));
  }

  async awake(span: WatchSpan): Promise<PlacedPool[]> {
    this.#hub = { span, seenAt: Date.now() };
    const unknown = this.#list.all().filter((pool) => !this.#presence.has(pool));
    return [...this.#presence.awake(Date.now()), ...unknown];
  }

  async forgetResting(): Promise<void> {
    const isIdle = (pool: PlacedPool): boolean => this.#idleMs(pool) >= POOL_IDLE_MS;
    const { config } = this.#store.current;
    const isOwn = ({ group, partition }: PlacedPool): boolean =>
      partition === null && config.groups.some(({ name }) => name === group);
    for (const pool of this.#list.all()) if (isIdle(pool) && !isOwn(pool)) this.#drop(pool);
    this.#publisher.publish();
  }

  async pools(): Promise<PlacedPool[]> {
    return this.#list.all();
  }

  async pastPools(since: number): Promise<PlacedPool[]> {
    return this.#past.since(since);
  }

  async share(group: string, partition: string): Promise<string> {
    const jurisdiction = this.#jurisdictionOf(group);
    const shared = this.#list.share({ group, partition, jurisdiction });
    if (shared !== partition) this.#sweep(group);
    this.#publisher.publish();
    return shared;
  }

  async accountOf(key: string): Promise<string | null> {
    return this.#accounts.find(key);
  }

  async noteAccount(key: string, account: string | null): Promise<void> {
    if (account === null) this.#accounts.forget(key);
    else this.#accounts.note(key, account, steadyClock.now());
  }

  async note(actor: string, action: string): Promise<void> {
    const { version } = this.#store.current;
    this.#note({ version, actor, action, changes: [], changes_omitted: 0 });
  }

  async auditPage(query: AuditQuery): Promise<AuditPage> {
    return this.#audit.page(query);
  }

  async versions(): Promise<VersionInfo[]> {
    return this.#versions.list();
  }

  async configAt(version: number): Promise<Config | null> {
    return this.#versions.at(version);
  }

  async temporaryAt(version: number): Promise<TemporaryField[]> {
    return this.#versions.temporaryAt(version);
  }

  async adminAccess(): Promise<AdminAccess> {
    const { admin_keys: adminKeys } = this.#store.current.config;
    return { sessionKey: this.#store.sessionKey, adminKeys };
  }

  async failedAttempt(address: string): Promise<number> {
    return this.#attempts.count(address, steadyClock.now());
  }

  #note(entry: Omit<AuditEntry, 'sequence' | 'at'> & { readonly at?: string }): void {
    this.#audit.add({ at: new Date().toISOString(), ...entry });
    const { actor, action, version } = entry;
    logEvent('operator_act', { actor, action, version });
  }

  async webhook(): Promise<WebhookConfig | null> {
    return this.#store.current.config.webhook;
  }

  async noteWarning(warning: Warning): Promise<void> {
    this.#warnings.note(warning);
    this.#attention.note();
  }

  async warnings(limit: number): Promise<Warning[]> {
    return this.#warnings.latest(limit);
  }

  async noteRefusals(counts: readonly RefusalCount[]): Promise<void> {
    this.#refusals.note(counts, Date.now());
    this.#attention.note();
  }

  async refusals(sinceMs: number, key?: string): Promise<RefusalCount[]> {
    const listed = this.#refusals.since(sinceMs);
    return key === undefined ? listed : listed.filter((one) => one.key === key);
  }

  async noteKeyless(counts: readonly KeylessCaller[]): Promise<void> {
    this.#keyless.note(counts);
  }

  async keyless(sinceMs: number): Promise<KeylessCaller[]> {
    return this.#keyless.since(sinceMs);
  }

  async refusalTotals(): Promise<RefusalTotal[]> {
    return this.#refusals.totals();
  }

  #snapshot(): ConfigSnapshot {
    const { version, changedAt, config } = this.#store.current;
    const { fullGroups } = this.#list;
    const temporary = this.#temporary.live;
    const ends = temporary.map(({ until }) => `until ${until}`);
    const tag = [version, ...fullGroups, ...ends].join(' ');
    const { fingerprintKey } = this.#store;
    const snapshot = { version, changedAt, config, fingerprintKey, tag, fullGroups };
    return temporary.length === 0 ? snapshot : { ...snapshot, temporary };
  }

  #versionFor(group: string): number {
    return changedFor(this.#store.current.changedAt, group);
  }

  #placed(pool: PresentPool): PresentPool {
    return { ...pool, jurisdiction: pool.jurisdiction ?? this.#jurisdictionOf(pool.group) };
  }

  /** Whether the reports of a pool are stored. Those of a pool whose key never succeeded are not. */
  #isKnown(pool: PlacedPool): boolean {
    if (this.#list.has(pool) || this.#presence.has(pool)) return true;
    return (
      pool.partition === null && definedGroup(this.#store.current.config, pool.group) !== undefined
    );
  }

  /** How long a resting pool has been unused. 0 means that it is in use or unknown. */
  #idleMs(pool: PlacedPool): number {
    const since = this.#presence.idleSince(pool);
    return since === null ? 0 : Math.max(0, Date.now() - since);
  }

  /** Whether a pool is resting. A resting pool reads the directory before it accepts a new call. */
  #isResting(pool: PlacedPool): boolean {
    return this.#presence.idleSince(pool) !== null;
  }

  #flushSoon(): void {
    if (this.#isFlushing || !(this.#presence.hasUnwritten || this.#costs.hasUnwritten)) return;
    this.#isFlushing = true;
    const flush = (): void => {
      this.#isFlushing = false;
      this.#presence.flush();
      this.#costs.flush();
    };
    this.ctx.waitUntil(pause(WRITE_DELAY_MS, this.#timers.after).then(flush));
  }

  #drop(pool: PlacedPool): void {
    this.#past.note(pool, Date.now());
    this.#list.drop(pool);
    this.#forget(pool);
  }

  /**
   * Deletes the reports of a pool. Those of an unpartitioned pool are kept: if a group of that name is created again,
   * its object continues with the same counts and costs.
   */
  #forget(pool: PlacedPool): void {
    const { group, partition } = pool;
    const isMadeByUs = group.startsWith(AUTO_PREFIX) || kindOfLimits(group) !== null;
    if (partition !== null || isMadeByUs) this.#presence.forget(pool);
  }

  /**
   * Removes pools from the list that receive no calls any more and hold none. Deletes the reports of pools that are
   * gone.
   */
  #dropRetired(): void {
    const { config } = this.#store.current;
    for (const pool of this.#list.all()) {
      if (!takesCalls(pool, config) && this.#isResting(pool)) this.#drop(pool);
    }
    for (const pool of this.#presence.pools()) {
      if (!takesCalls(pool, config) && !this.#list.has(pool)) this.#forget(pool);
    }
  }

  /** Builds the definition of a group once per version, because a thousand pools may request it at once. */
  #definition(name: string): GroupDefinition {
    const { version, routingVersion, config } = this.#store.current;
    const known = this.#definitions.get(name);
    if (known?.version === version) return known;
    const group = definedGroup(config, name);
    const made: GroupDefinition = {
      version,
      routingVersion,
      config: group === undefined ? null : JSON.stringify(group),
      ...(group?.members.length ? { ownSecrets: ownSecretsOf(config, group) } : {}),
      ...(name.startsWith(AUTO_PREFIX)
        ? { weights: keyWeights(config), ...switchesInForce(config, name) }
        : {}),
    };
    this.#definitions.set(name, made);
    return made;
  }

  /** Adds to a definition whether the pool receives calls. */
  #withUse(pool: PlacedPool, definition: GroupDefinition): GroupDefinition {
    const isUsed = takesCalls(pool, this.#store.current.config);
    return isUsed ? definition : { ...definition, takesNoCalls: true };
  }

  #group(name: string): GroupConfig | undefined {
    return this.#store.current.config.groups.find((group) => group.name === name);
  }

  #jurisdictionOf(name: string): GroupConfig['jurisdiction'] {
    return this.#group(name)?.jurisdiction ?? null;
  }

  /** Asks the pools of a full group to leave the list if they have been unused for long. */
  #sweep(group: string): void {
    const now = steadyClock.now();
    if (now - (this.#sweptAt.get(group) ?? -Infinity) < SWEEP_EVERY_MS) return;
    this.#sweptAt.set(group, now);
    const pools = this.#list.all().filter((pool) => pool.group === group);
    const forget = async (pool: PlacedPool): Promise<void> => {
      if (this.#isResting(pool)) {
        if (this.#idleMs(pool) >= POOL_IDLE_MS) this.#drop(pool);
        return;
      }
      try {
        await this.#stubOf(pool).forget(pool.jurisdiction ?? null);
      } catch {
        // The pool stays, and the next sweep asks again.
      }
    };
    this.ctx.waitUntil(mapConcurrently(pools, POOLS_AT_ONCE, forget));
  }

  #stubOf(pool: PlacedPool): GroupRpc {
    return poolOf(this.env, pool.group, pool.partition, {
      location: this.#group(pool.group)?.location ?? null,
      jurisdiction: pool.jurisdiction ?? null,
    });
  }

  /**
   * Pushes the current definition, which may be newer than the change that caused the push.
   *
   * @returns false if the pool receives no calls any more but is still in use, so it must be notified again
   */
  async #report(pool: PlacedPool): Promise<boolean> {
    const stub = this.#stubOf(pool);
    const definition = this.#withUse(pool, this.#definition(pool.group));
    await stub.reconfigure(definition);
    if (definition.takesNoCalls !== true) return true;
    // An object that `replace` listed does not know that it is listed.
    const { in_use, cooling, unclaimed: orphaned, lent, queued } = await stub.status();
    // The pool must report its costs before it is dropped, or they would be lost. It leaves the list when it is empty,
    // but that message can be lost.
    if (in_use + cooling + orphaned + lent + queued > 0) return false;
    await stub.forget(pool.jurisdiction ?? null);
    if (this.#list.has(pool)) this.#drop(pool);
    return true;
  }
}
