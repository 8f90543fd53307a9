import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { expect, vi } from 'vitest';
import type { Env, KeyValueStore } from '../../../src/env.ts';
import { directoryOf } from '../../../src/env.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { env, until } from '../support/worker.ts';

/** An isolate of its own: its modules, and a directory of which a test says how it answers. */
export interface ProxyIsolate {
  send(path: string, json?: unknown, init?: RequestInit): Promise<ProxyIsolateAnswer>;
  /** How often it asked the directory for a snapshot. */
  asked(): number;
  /** How many of its requests waited for a configuration. */
  waited(): number;
  /** Says how the directory answers it from now on. */
  directory(mode: Mode): void;
  /** Puts the groups' objects out of its reach. */
  losePools(): void;
}

/** The end of a request. */
interface ProxyIsolateAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

type Mode = 'answers' | 'hangs' | 'fails';

/** Starts one, whose store has that copy of the configuration, or is none. */
export async function startIsolate(store?: KeyValueStore): Promise<ProxyIsolate> {
  vi.resetModules();
  const { createApp } = await import('../../../src/http/app.ts');
  const { isolateConfig } = await import('../../../src/config/isolate-config.ts');
  const { BehindCalls } = await import('../../../src/call/observe/note-refusal.ts');
  // Its requests are waited for with all that they do behind them, which is ten seconds for a flush.
  vi.spyOn(BehindCalls.prototype, 'soon').mockImplementation(() => {});
  const app = createApp() as Required<ExportedHandler<Env>>;
  let asked = 0;
  let mode: Mode = 'answers';
  const answer = async <T>(work: () => Promise<T>): Promise<T> => {
    asked += 1;
    if (mode === 'fails') throw new Error('The directory is out of reach.');
    return mode === 'hangs' ? new Promise<never>(() => {}) : work();
  };
  let hasPools = true;
  const lost = { acquire: () => Promise.reject(new Error('out of reach')) };
  const GROUPS = { getByName: (name: string) => (hasPools ? env.GROUPS.getByName(name) : lost) };
  const own = { ...env, GROUPS, SNAPSHOTS: store, DIRECTORY: { getByName: () => seenBy(answer) } };
  // Loading modules anew resets the objects, which the first calls notice.
  await until(() => directoryOf(env).snapshot(null));
  return {
    asked: () => asked,
    waited: () => isolateConfig.reads.waited,
    directory: (next) => (mode = next),
    losePools: () => (hasPools = false),
    async send(path, json, more) {
      const ctx = createExecutionContext();
      const sent = json === undefined ? {} : { method: 'POST', body: JSON.stringify(json) };
      const init = { ...sent, ...more } as RequestInit<IncomingRequestCfProperties>;
      const request = new Request<unknown, IncomingRequestCfProperties>(
        `https://headgate.test${path}`,
        init,
      );
      const response = await app.fetch(request, own as unknown as Env, ctx);
      const text = await response.text();
      if (mode !== 'hangs') await waitOnExecutionContext(ctx);
      return { status: response.status, headers: response.headers, text };
    },
  };
}

/** The directory's own answers, but for those to who wants a snapshot. */
function seenBy(answer: <T>(work: () => Promise<T>) => Promise<T>): unknown {
  return new Proxy(directoryOf(env), {
    get(target, name) {
      const method = Reflect.get(target, name) as (...given: unknown[]) => Promise<unknown>;
      const work = (...given: unknown[]) =>
        Reflect.apply(method, target, given) as Promise<unknown>;
      if (name !== 'snapshot') return work;
      return (...given: unknown[]) => answer(() => work(...given));
    },
  });
}

/** Changes the configuration as another isolate would; answers with the version. */
export async function writeElsewhere(document: unknown): Promise<number> {
  const imported = importConfig(document);
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  const directory = directoryOf(env);
  const known = await directory.snapshot(null);
  const answer = await directory.replace(imported.config, known?.version ?? 0, 'other', 'test');
  expect(answer.kind).toBe('replaced');
  return answer.version;
}
