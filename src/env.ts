import type { DirectoryRpc } from './contract/rpc/directory-rpc.ts';
import type { FeedRpc } from './contract/rpc/feed-rpc.ts';
import type { GroupRpc } from './contract/rpc/group-rpc.ts';
import type { RunsRpc } from './contract/rpc/runs-rpc.ts';
import type { VerificationRpc } from './contract/rpc/verification-rpc.ts';

/** A place for an object that is created; see `location` and `jurisdiction` of a group. */
interface LocationOptions {
  readonly locationHint?: string;
}

/** A Durable Object namespace, seen through the contract alone. */
export interface ObjectNamespace<Rpc> {
  getByName(name: string, options?: LocationOptions): Rpc;
  jurisdiction(name: string): ObjectNamespace<Rpc>;
}

/** Built files by their paths; the host of a URL means nothing. */
interface AssetSource {
  fetch(url: string, init: { readonly headers: Record<string, string> }): Promise<Response>;
}

/** The part of a network binding that Headgate uses. */
interface NetworkBinding {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

/** A namespace of Workers KV, as far as it is used. */
export interface KeyValueStore {
  get(key: string, type: 'json'): Promise<unknown>;
  put(key: string, value: string): Promise<void>;
}

/** A dataset of Analytics Engine, as far as it is used. */
export interface AnalyticsDataset {
  writeDataPoint(point: {
    readonly indexes: readonly string[];
    readonly blobs: readonly string[];
    readonly doubles: readonly number[];
  }): void;
}

/** The bindings of the Worker and its objects. Secrets named `UPSTREAM_*` stand beside these. */
export interface Env {
  readonly GROUPS: ObjectNamespace<GroupRpc>;
  readonly DIRECTORY: ObjectNamespace<DirectoryRpc>;
  readonly FEED: ObjectNamespace<FeedRpc>;
  /** Holds the leases of runs. Absent: the slot of a call that starts one goes back with its answer. */
  readonly RUNS?: ObjectNamespace<RunsRpc>;
  /** Self-hosted only, where every object has a file: pools whose keys had no success yet are in one. */
  readonly TRIALS?: ObjectNamespace<VerificationRpc>;
  /** A copy of the configuration for isolates that begin. Absent: they ask the directory. */
  readonly SNAPSHOTS?: KeyValueStore;
  /** The dashboard's files. Absent: they were never built. */
  readonly ASSETS?: AssetSource;
  /** Opens the admin routes. Without it they are closed. */
  readonly ADMIN_TOKEN?: string;
  /** Cloudflare Access before the admin routes: `<team>.cloudflareaccess.com`, and the application's tag. */
  readonly ACCESS_TEAM_DOMAIN?: string;
  readonly ACCESS_AUD?: string;
  /** The role of people whom Access lets in: `viewer`, which is the default, `operator` or `admin`. */
  readonly ACCESS_ROLE?: string;
  /** Opens `/metrics`, which the `ADMIN_TOKEN` opens too. */
  readonly METRICS_TOKEN?: string;
  /** Gets one data point for each call that has ended. Absent: there is none. */
  readonly ANALYTICS?: AnalyticsDataset;
  /** `allow` where Headgate hosts itself, so that upstreams may have private addresses. */
  readonly PRIVATE_UPSTREAMS?: string;
  /** Where the directory, the feed and the pools of groups without a jurisdiction of their own must stay. */
  readonly JURISDICTION?: string;
  /** Where the directory and the feed are created, as a hint. */
  readonly DIRECTORY_LOCATION?: string;
  /**
   * Self-hosted only: the network with a pool of connections only for WebSocket upgrades. workerd retries a GET on each idle
   * connection of a pool until one works, and an upgrade is a GET. Upgrades leave no idle connections.
   */
  readonly UPGRADES?: NetworkBinding;
  /** Self-hosted only: the process that wrote a row. Rows of another process died with it. */
  readonly BOOT_ID?: string;
  /** Hosts that are served, separated by commas, if Headgate listens only on this machine. Absent: all. */
  readonly ALLOWED_HOSTS?: string;
  /** Self-hosted only, where one process takes all calls: how many MiB the bodies of calls may hold together. */
  readonly BODY_MEMORY_MIB?: string;
}

/** Variables that say where objects are; an empty one says nothing. `runtime/places.ts` checks them. */
export type LocationVariables = Pick<Env, 'JURISDICTION' | 'DIRECTORY_LOCATION'>;

/** Tells the jurisdiction of the deployment; null: it has none. */
export function jurisdictionOf({ JURISDICTION: name = '' }: LocationVariables): string | null {
  return name === '' ? null : name;
}

/** Finds the copy for isolates that begin; null: there is none, or it would leave the jurisdiction. */
export function snapshotStoreOf(
  env: Pick<Env, 'SNAPSHOTS' | 'JURISDICTION'>,
): KeyValueStore | null {
  return jurisdictionOf(env) === null ? (env.SNAPSHOTS ?? null) : null;
}

/** Narrows a namespace down to objects of a jurisdiction; null: of none. */
export function keptIn<Rpc>(
  namespace: ObjectNamespace<Rpc>,
  jurisdiction: string | null,
): ObjectNamespace<Rpc> {
  if (jurisdiction === null) return namespace;
  try {
    return namespace.jurisdiction(jurisdiction);
  } catch (error) {
    // Plain workerd has one place only and says so; Cloudflare never does. Any other refusal stands.
    if (error instanceof Error && error.message.includes('not implemented')) return namespace;
    throw error;
  }
}

/** Finds an object of which there is one in a deployment. */
function single<Rpc>(env: LocationVariables, namespace: ObjectNamespace<Rpc>, name: string): Rpc {
  const { DIRECTORY_LOCATION: locationHint = '' } = env;
  const within = keptIn(namespace, jurisdictionOf(env));
  return locationHint === '' ? within.getByName(name) : within.getByName(name, { locationHint });
}

/** Finds the directory, which is one object. */
export function directoryOf(env: Pick<Env, 'DIRECTORY'> & LocationVariables): DirectoryRpc {
  return single(env, env.DIRECTORY, 'directory');
}

/** Finds the object of all pools on trial. Where there is none, each has its own from the start. */
export function verificationsOf({ TRIALS: VERIFICATIONS }: Pick<Env, 'TRIALS'>): VerificationRpc {
  if (VERIFICATIONS === undefined) throw new Error('There are no trials here.');
  return VERIFICATIONS.getByName('trials');
}

/** Finds the object of an upstream's runs, whose leases are of groups in a jurisdiction; null: of none. Null: there is none. */
export function runsOf(
  env: Pick<Env, 'RUNS'> & LocationVariables,
  upstream: string,
  jurisdiction: string | null,
): RunsRpc | null {
  if (env.RUNS === undefined) return null;
  return keptIn(env.RUNS, jurisdiction ?? jurisdictionOf(env)).getByName(upstream);
}

/** Finds the hub of the dashboards, which is one object. */
export function feedOf(env: Pick<Env, 'FEED'> & LocationVariables): FeedRpc {
  return single(env, env.FEED, 'feed');
}
