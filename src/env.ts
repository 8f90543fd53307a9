import type { DirectoryRpc } from './contract/rpc/directory-rpc.ts';
import type { FeedRpc } from './contract/rpc/feed-rpc.ts';
import type { GroupRpc } from './contract/rpc/group-rpc.ts';
import type { RunsRpc, VerificationRpc } from './contract/rpc/lease-objects-rpc.ts';

/** A hint where a new object is created. See `location` and `jurisdiction` of a group. */
interface LocationOptions {
  readonly locationHint?: string;
}

/** A Durable Object namespace, typed by the contract alone. */
export interface ObjectNamespace<Rpc> {
  getByName(name: string, options?: LocationOptions): Rpc;
  jurisdiction(name: string): ObjectNamespace<Rpc>;
}

/** Built files by their paths. The host of a URL is ignored. */
interface AssetSource {
  fetch(url: string, init: { readonly headers: Record<string, string> }): Promise<Response>;
}

/** The part of a network binding that Headgate uses. */
interface NetworkBinding {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

/** The part of a Workers KV namespace that Headgate uses. */
export interface KeyValueStore {
  get(key: string, type: 'json'): Promise<unknown>;
  put(key: string, value: string): Promise<void>;
}

/** The part of an Analytics Engine dataset that Headgate uses. */
export interface AnalyticsDataset {
  writeDataPoint(point: {
    readonly indexes: readonly string[];
    readonly blobs: readonly string[];
    readonly doubles: readonly number[];
  }): void;
}

/** The bindings of the Worker and its objects. Secrets named `UPSTREAM_*` are bound in addition. */
export interface Env {
  readonly GROUPS: ObjectNamespace<GroupRpc>;
  readonly DIRECTORY: ObjectNamespace<DirectoryRpc>;
  readonly FEED: ObjectNamespace<FeedRpc>;
  /** Holds the leases of runs. If absent, a call that starts a run releases its slot with its answer. */
  readonly RUNS?: ObjectNamespace<RunsRpc>;
  /** Self-hosted only, where every object has a file. One object holds all unverified pools. */
  readonly TRIALS?: ObjectNamespace<VerificationRpc>;
  /** A copy of the configuration for new isolates. If absent, they ask the directory. */
  readonly SNAPSHOTS?: KeyValueStore;
  /** The dashboard's files. Absent if they were never built. */
  readonly ASSETS?: AssetSource;
  /** Authenticates the admin routes. If absent, they are disabled. */
  readonly ADMIN_TOKEN?: string;
  /** Cloudflare Access in front of the admin routes: `<team>.cloudflareaccess.com`, and the application's tag. */
  readonly ACCESS_TEAM_DOMAIN?: string;
  readonly ACCESS_AUD?: string;
  /** The role of users that Access admits: `viewer` (the default), `operator` or `admin`. */
  readonly ACCESS_ROLE?: string;
  /** Authenticates `/metrics`, which also accepts the `ADMIN_TOKEN`. */
  readonly METRICS_TOKEN?: string;
  /** Receives one data point for each ended call. Absent if there is no dataset. */
  readonly ANALYTICS?: AnalyticsDataset;
  /** Self-hosted only: `allow` permits upstreams with private addresses. */
  readonly PRIVATE_UPSTREAMS?: string;
  /** Jurisdiction of the directory, the feed and the pools of groups without their own. */
  readonly JURISDICTION?: string;
  /** Location hint for the directory and the feed. */
  readonly DIRECTORY_LOCATION?: string;
  /**
   * Self-hosted only: a network with a connection pool for WebSocket upgrades alone. workerd retries a GET on each idle
   * connection of a pool until one works, and an upgrade is a GET. Upgrades leave no idle connections.
   */
  readonly UPGRADES?: NetworkBinding;
  /** Self-hosted only: the process that wrote a row. Rows of another process died with it. */
  readonly BOOT_ID?: string;
  /**
   * Hosts that are served, separated by commas, if Headgate listens only on this machine. If absent, all are served.
   */
  readonly ALLOWED_HOSTS?: string;
  /** Self-hosted only, where one process serves all calls: memory for the bodies of calls, in MiB. */
  readonly BODY_MEMORY_MIB?: string;
}

/** Variables for the location of objects. An empty one is ignored. `runtime/deployment.ts` checks them. */
export type LocationVariables = Pick<Env, 'JURISDICTION' | 'DIRECTORY_LOCATION'>;

/** The jurisdiction of the deployment. null if it has none. */
export function jurisdictionOf({ JURISDICTION: name = '' }: LocationVariables): string | null {
  return name === '' ? null : name;
}

/** The configuration copy for new isolates. null if there is none, or it would leave the jurisdiction. */
export function snapshotStoreOf(
  env: Pick<Env, 'SNAPSHOTS' | 'JURISDICTION'>,
): KeyValueStore | null {
  return jurisdictionOf(env) === null ? (env.SNAPSHOTS ?? null) : null;
}

/** Restricts a namespace to a jurisdiction. null means no restriction. */
export function keptIn<Rpc>(
  namespace: ObjectNamespace<Rpc>,
  jurisdiction: string | null,
): ObjectNamespace<Rpc> {
  if (jurisdiction === null) return namespace;
  try {
    return namespace.jurisdiction(jurisdiction);
  } catch (error) {
    // Plain workerd has only one place and throws this error. Cloudflare never does. Any other error is rethrown.
    if (error instanceof Error && error.message.includes('not implemented')) return namespace;
    throw error;
  }
}

function single<Rpc>(env: LocationVariables, namespace: ObjectNamespace<Rpc>, name: string): Rpc {
  const { DIRECTORY_LOCATION: locationHint = '' } = env;
  const within = keptIn(namespace, jurisdictionOf(env));
  return locationHint === '' ? within.getByName(name) : within.getByName(name, { locationHint });
}

export function directoryOf(env: Pick<Env, 'DIRECTORY'> & LocationVariables): DirectoryRpc {
  return single(env, env.DIRECTORY, 'directory');
}

/** The object of all unverified pools. Without the binding each of them has its own object from the start. */
export function verificationsOf({ TRIALS: VERIFICATIONS }: Pick<Env, 'TRIALS'>): VerificationRpc {
  if (VERIFICATIONS === undefined) throw new Error('The TRIALS binding is missing.');
  return VERIFICATIONS.getByName('trials');
}

/**
 * The object of an upstream's runs, whose leases are of groups in this jurisdiction, or in none if it is null. Returns
 * null without the binding.
 */
export function runsOf(
  env: Pick<Env, 'RUNS'> & LocationVariables,
  upstream: string,
  jurisdiction: string | null,
): RunsRpc | null {
  if (env.RUNS === undefined) return null;
  return keptIn(env.RUNS, jurisdiction ?? jurisdictionOf(env)).getByName(upstream);
}

export function feedOf(env: Pick<Env, 'FEED'> & LocationVariables): FeedRpc {
  return single(env, env.FEED, 'feed');
}
