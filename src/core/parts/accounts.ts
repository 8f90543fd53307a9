import { instant, type InstantMs } from '../words/ids.ts';
import {
  ACCOUNTS_MAX,
  AGENT_FORGOTTEN_MS,
  AGENTS_MAX,
  type GroupSettings,
} from '../words/settings.ts';
import { LANES, type Holder, type Lane } from '../words/ticket.ts';

/** Fair shares: the service that tenants and agents have received, and the turns of the lanes. */

/**
 * Virtual service that a tenant or agent has received, in slot-milliseconds divided by its weight. This is start-time
 * fair queuing: the least served goes first. A grant is charged the mean hold in advance, renewals charge a longer
 * hold, and the end corrects both.
 */
interface ServiceAccount {
  service: number;
  /** Corrections do not lower the service below this, so no account gains credit from before its backlog. */
  floor: number;
}

/** A tenant, or one agent of a tenant. */
export interface Account {
  readonly key: string;
  waiting: number;
  /** Slots that it holds, including cooling ones. */
  slots: number;
  /** When a waiter or slot of it last ended. -Infinity if it never had one. */
  activeAt: InstantMs;
}

export interface AgentAccount extends Account, ServiceAccount {
  /** The start of the run, as far as the group knows. */
  startedAt: InstantMs;
  lastSeenAt: InstantMs;
}

export interface TenantAccount extends Account {
  /**
   * One account for each lane. A charge counts in all of them. Lanes need separate levels, because the waiters of one
   * lane may have received far more than those of another. A tenant that starts level with the former must not come
   * behind the latter.
   */
  readonly shares: Readonly<Record<Lane, ServiceAccount>>;
  readonly agents: Map<string, AgentAccount>;
  /** Its agents with waiters. Thousands of others may have none. */
  readonly waitingAgents: Set<AgentAccount>;
  /** Service of its last granted agent before the charge. New agents start there. */
  lastAgentService: number;
}

export interface Accounts {
  readonly tenants: Map<string, TenantAccount>;
  agentCount: number;
  /** Service at which a new tenant starts if no call is queued, per lane. */
  readonly lastService: Record<Lane, number>;
}

export const NO_AGENT = '';

/** Prefix of the keys of session accounts. No header value contains it. */
const SESSION_PREFIX = '\0';

/** Returns the key of the account that a call is charged to within its tenant. */
export function agentKeyOf({ agent, session }: Pick<Holder, 'agent' | 'session'>): string {
  return agent ?? (session === undefined ? NO_AGENT : `${SESSION_PREFIX}${session}`);
}

/** Whether the caller named the agent of this account. Caps for agents apply to no other account. */
export function isNamedAgent({ key }: Account): boolean {
  return key !== NO_AGENT && !key.startsWith(SESSION_PREFIX);
}

export function emptyAccounts(): Accounts {
  const lastService = { high: 0, normal: 0, low: 0 };
  return { tenants: new Map(), agentCount: 0, lastService };
}

/** Earlier than all calls. */
const NEVER = instant(-Infinity);

function newAccount(key: string): Account {
  return { key, waiting: 0, slots: 0, activeAt: NEVER };
}

function emptyShare(): ServiceAccount {
  return { service: 0, floor: 0 };
}

export function tenantAccount(accounts: Accounts, key: string): TenantAccount {
  let account = accounts.tenants.get(key);
  if (account === undefined) {
    const shares = { high: emptyShare(), normal: emptyShare(), low: emptyShare() };
    const noAgents = { agents: new Map(), waitingAgents: new Set<AgentAccount>() };
    account = { ...newAccount(key), shares, ...noAgents, lastAgentService: 0 };
    accounts.tenants.set(key, account);
    forgetTenants(accounts, account);
  }
  return account;
}

/**
 * Returns the account of an agent run that has a call now. A run known only by its id starts when the group first sees
 * it. It starts again with an empty account after a period without calls. Sessions live for days and turns do not, but
 * a tool may run for minutes between two calls of a turn.
 */
export function agentAccount(
  accounts: Accounts,
  tenant: TenantAccount,
  key: string,
  now: InstantMs,
  seenAt = now,
): AgentAccount {
  let account = tenant.agents.get(key);
  if (account === undefined) {
    account = { ...newAccount(key), ...emptyShare(), startedAt: seenAt, lastSeenAt: now };
    tenant.agents.set(key, account);
    accounts.agentCount += 1;
    forgetAgents(accounts, tenant, account, now);
  } else if (isOver(account, now)) {
    Object.assign(account, { startedAt: seenAt, activeAt: NEVER, ...emptyShare() });
  } else if (seenAt < account.startedAt) {
    account.startedAt = seenAt;
  }
  account.lastSeenAt = now;
  return account;
}

/**
 * Levels an account with the other waiters when its backlog begins, so that it brings no credit from idle time.
 *
 * @param level the least service of the waiters. Without waiters, the service of the last grant
 */
export function catchUp(share: ServiceAccount, level: number): void {
  share.service = Math.max(share.service, level);
  share.floor = level;
}

/** Maximum distance in service between held lines: one slot-minute. */
const HELD_LEAD_MAX = 60_000;

/**
 * Raises the service of lines whose waiters are all held to that of the lines that may start. They gain no credit while
 * they are held. They keep their order, so a scope with few slots still shares them fairly.
 *
 * @returns whether any service changed
 */
export function catchUpHeld(held: readonly ServiceAccount[], level: number): boolean {
  const least = held.reduce((low, { service }) => Math.min(low, service), Infinity);
  if (least >= level) return false;
  for (const share of held) {
    const lead = Math.min(share.service - least, HELD_LEAD_MAX);
    share.service = Math.max(share.service, level + lead);
    share.floor = Math.max(share.floor, level);
  }
  return true;
}

/**
 * Stores the level for new tenants at a grant, before its charge. In lanes where the tenant does not wait, its service
 * may be far below the level there, and must not lower it.
 */
export function noteServiceOf(
  { lastService }: Accounts,
  tenant: TenantAccount,
  granted: Lane,
): void {
  for (const lane of LANES) {
    const { service } = tenant.shares[lane];
    lastService[lane] = lane === granted ? service : Math.max(lastService[lane], service);
  }
}

/** The least service of the tenant's agents with waiters. Infinity if there are none. */
export function leastAgentService({ waitingAgents }: TenantAccount): number {
  let least = Infinity;
  for (const { service } of waitingAgents) least = Math.min(least, service);
  return least;
}

/** Levels all agents. While the oldest goes first, their service has no meaning. */
export function levelAgents({ tenants }: Accounts): void {
  for (const tenant of tenants.values()) {
    tenant.lastAgentService = 0;
    for (const agent of tenant.agents.values()) Object.assign(agent, emptyShare());
  }
}

/** Adds slot time to an account. A negative amount is a refund. */
export function charge(share: ServiceAccount, slotMs: number, weight: number): void {
  share.service = Math.max(share.floor, share.service + slotMs / weight);
}

/** The tenant's weight, 1 by default. */
export function weightOf({ weights }: GroupSettings, tenant: string): number {
  return (Object.hasOwn(weights, tenant) ? weights[tenant] : undefined) ?? 1;
}

function isIdle(account: Account): boolean {
  return account.waiting === 0 && account.slots === 0;
}

function isOver(agent: AgentAccount, now: InstantMs): boolean {
  return isIdle(agent) && now - agent.lastSeenAt > AGENT_FORGOTTEN_MS;
}

/**
 * Bounds the number of tenants. It removes idle tenants that have no debt, because they would return level. If there
 * are none, it removes one idle tenant with debt.
 */
function forgetTenants(accounts: Accounts, newest: TenantAccount): void {
  const { tenants, lastService } = accounts;
  if (tenants.size <= ACCOUNTS_MAX) return;
  const waiting = [...tenants.values()].filter((each) => each.waiting > 0);
  const levelIn = (lane: Lane): number => {
    const least = waiting.reduce((low, each) => Math.min(low, each.shares[lane].service), Infinity);
    return least === Infinity ? lastService[lane] : least;
  };
  const levels = { high: levelIn('high'), normal: levelIn('normal'), low: levelIn('low') };
  const idle = [...tenants.values()].filter((each) => isIdle(each) && each !== newest);
  const withoutDebt = idle.filter(({ shares }) =>
    LANES.every((lane) => shares[lane].service <= levels[lane]),
  );
  for (const { key, agents } of withoutDebt.length > 0 ? withoutDebt : idle.slice(0, 1)) {
    tenants.delete(key);
    accounts.agentCount -= agents.size;
  }
}

/**
 * Removes agents whose run has ended. Each new agent checks the two that were checked least recently. If there are
 * still too many, one idle agent is removed, if possible of the same tenant.
 */
function forgetAgents(
  accounts: Accounts,
  tenant: TenantAccount,
  newest: AgentAccount,
  now: InstantMs,
): void {
  const forget = (agents: Map<string, AgentAccount>, { key }: AgentAccount): void => {
    agents.delete(key);
    accounts.agentCount -= 1;
  };
  let looked = 0;
  for (const agent of tenant.agents.values()) {
    if (agent === newest || looked === 2) break;
    looked += 1;
    forget(tenant.agents, agent);
    if (isOver(agent, now)) continue;
    tenant.agents.set(agent.key, agent);
    accounts.agentCount += 1;
  }
  if (accounts.agentCount <= AGENTS_MAX) return;
  for (const { agents } of [tenant, ...accounts.tenants.values()]) {
    for (const agent of agents.values()) {
      if (isIdle(agent) && agent !== newest) return forget(agents, agent);
    }
  }
}

/** Minimum credit for a turn. A little less than 1, because shares such as 0.1 add up inexactly. */
const ONE_TURN = 1 - 1e-9;

/** Maximum credit, with which a lane catches up after it could not be served for a while. */
const CREDIT_MAX = 2;

interface LaneState {
  /** Credit of the lower lanes, in turns. */
  readonly laneCredit: Record<Lane, number>;
  /** Lengths of the lanes. It only matters which are 0. */
  readonly queue: { readonly lanes: Readonly<Record<Lane, { readonly length: number }>> };
  readonly settings: Pick<GroupSettings, 'laneShares'>;
}

/** Ranks the lanes. A lane that is owed a turn goes first, by the largest credit. Then they go by priority. */
export function laneTurns({ laneCredit }: Pick<LaneState, 'laneCredit'>): Record<Lane, number> {
  const owed = LANES.filter((lane) => laneCredit[lane] >= ONE_TURN).toSorted(
    (a, b) => laneCredit[b] - laneCredit[a],
  );
  const turn = (lane: Lane, index: number): number => {
    const place = owed.indexOf(lane);
    return place >= 0 ? place - LANES.length : index;
  };
  return { high: turn('high', 0), normal: turn('normal', 1), low: turn('low', 2) };
}

/**
 * Notes a grant to a lane, which pays one turn. Every lane with waiters earns its share of a turn. The granted lane
 * earns it too, so that shares refer to all grants. So a lane gets its share while it has waiters, without timers. A
 * lane with share 0 earns nothing and may starve.
 */
export function noteLaneGrant(state: LaneState, granted: Lane): void {
  const { laneCredit, queue, settings } = state;
  laneCredit[granted] = Math.max(0, laneCredit[granted] - 1);
  for (const lane of LANES) {
    if (queue.lanes[lane].length === 0) continue;
    laneCredit[lane] = Math.min(CREDIT_MAX, laneCredit[lane] + settings.laneShares[lane]);
  }
}
