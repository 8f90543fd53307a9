import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startServe, type Serve } from '../../scripts/serve/start-serve.ts';
import { buildAround } from '../../test/support/build-worker.ts';

const COUNTING = {
  path: fileURLToPath(new URL('rows-worker.js', import.meta.url)),
  makes: 'counting',
  classes: ['GroupObject'],
};

/** Everything that statements of one kind have come to. */
export interface Sum {
  readonly statements: number;
  readonly rows: number;
  /** Of the texts and blobs that were bound. */
  readonly bytes: number;
}

/** Writes of one object. */
export interface Counts {
  /** How often code ran that wrote, without a pause: no more transactions than that. */
  readonly turns: number;
  readonly kinds: Readonly<Record<string, Sum>>;
}

const NOTHING: Counts = { turns: 0, kinds: {} };

/** A build of Headgate that is measured. */
export interface Build {
  readonly name: string;
  /** Path of a module around the build that counts. */
  readonly module: string;
  /** Folder of its databases. */
  readonly dir: string;
}

/** A group with an upstream of its own, by whose name it is called. */
export interface RowsGroup {
  readonly name: string;
  readonly limits: Readonly<Record<string, number>>;
}

/** A Headgate that counts what its group objects write. */
export interface RowsSubject {
  readonly name: string;
  readonly port: number;
  readonly serve: Serve;
  /** Counts of one group's object since its process began. */
  counts(group: string): Promise<Counts>;
  /** Asks at one of the counting Worker's own paths; an answer other than 200 is thrown. */
  ask(path: string, signal?: AbortSignal): Promise<Response>;
}

/** Builds a module around a built one that counts what group objects write. */
export async function buildCounting(name: string, built: string, dir: string): Promise<Build> {
  const own = join(dir, name.replaceAll(/[^a-z0-9]+/gi, '-'));
  const module = await buildAround(built, COUNTING, own);
  return { name, module, dir: own };
}

/** Starts it in a folder below the build's own, on what an earlier process has left there if there was one. */
export async function startRows(
  { name, module, dir }: Build,
  folder: string,
  upstreamUrl: string,
  groups: readonly RowsGroup[],
): Promise<RowsSubject> {
  const serve = await startServe({
    port: 0,
    dataDir: join(dir, folder),
    module,
    // Its own connections and memory are none of what is measured.
    forwarder: false,
    adminToken: 'bench-admin-token',
    env: {},
    config: {
      upstreams: groups.map((group) => ({
        id: group.name,
        base_url: upstreamUrl,
        dialect: 'openai',
      })),
      groups: groups.map((group) => ({
        name: group.name,
        match: { upstreams: [group.name] },
        limits: group.limits,
        holds: { release_cooldown_ms: 0, cancel_cooldown_ms: 0 },
      })),
    },
  });
  const ask = async (path: string, signal?: AbortSignal): Promise<Response> => {
    const response = await fetch(`${serve.url}/__rows${path}`, signal ? { signal } : {});
    if (response.ok) return response;
    throw new Error(`${response.status}: ${await response.text()}`);
  };
  return {
    name,
    port: Number(new URL(serve.url).port),
    serve,
    ask,
    async counts(group) {
      const all = (await (await ask('')).json()) as Record<string, Counts>;
      return all[group] ?? NOTHING;
    },
  };
}
