/*
 * Set-up of tests in workerd. Many test files run in one runtime, one after another, because starting it and sending it
 * the Worker's modules costs more than most files do. Each file gets modules, objects and bindings as if it were the
 * first. A test also fails if a pool breaks an invariant.
 */
import { listDurableObjectIds, reset, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { vi } from 'vitest';
import type { Env } from '../../../src/env.ts';

interface ModuleRunner {
  readonly evaluatedModules: {
    getModuleById(
      id: string,
    ): { readonly evaluated: boolean; readonly exports?: unknown } | undefined;
  };
  import(id: string): Promise<unknown>;
  readonly transport: {
    invoke(name: string, data: readonly unknown[]): Promise<unknown>;
  };
}

/** What the first file of a runtime found, and whether that is being restored. */
interface RuntimeState {
  readonly bindings: Readonly<Record<string, unknown>>;
  isRestoring: boolean;
  /** Ends what the modules of the current file still send later. */
  endFile(): void;
}

interface RuntimeScope {
  readonly __vitest_mocker__: { readonly moduleRunner: ModuleRunner };
  runtimeState?: RuntimeState;
}

const scope = globalThis as unknown as RuntimeScope;
const bindings = env as unknown as Record<string, unknown>;

if (scope.runtimeState === undefined) {
  scope.runtimeState = { bindings: { ...bindings }, isRestoring: false, endFile: () => undefined };
  readLoadedWorker(scope.__vitest_mocker__.moduleRunner, scope.runtimeState);
  reuseLoadedCode(scope.__vitest_mocker__.moduleRunner);
} else {
  await restore(scope.runtimeState);
}

// After the reset, so that the Worker's modules are those that its tests import.
const { ViolationLog } = await import('../../../src/group/observe/lesson-warnings.ts');
const { BehindCalls } = await import('../../../src/call/observe/note-refusal.ts');
const { failByViolations, noteViolation } = await import('../../support/violations.ts');

// oxlint-disable-next-line typescript/unbound-method -- called with its object below
const { note } = ViolationLog.prototype;
const reported = new WeakMap<object, string>();

ViolationLog.prototype.note = function noted(violations, now) {
  const text = JSON.stringify(violations);
  const isNews = Object.values(violations).some((count) => count > 0);
  if (isNews && reported.get(violations) !== text) noteViolation(text);
  reported.set(violations, text);
  note.call(this, violations, now);
};

failByViolations();
dropLateCounts(scope.runtimeState);

/** Removes what the files before have left: modules, objects, copies of the configuration, bindings and globals. */
async function restore(state: RuntimeState): Promise<void> {
  const { bindings: first } = state;
  state.endFile();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  for (const name of Object.keys(bindings)) if (!(name in first)) delete bindings[name];
  Object.assign(bindings, first);
  await clearDirectories(first['DIRECTORY'] as DurableObjectNamespace);
  vi.resetModules();
  // A call of the previous file may start an object again after its instance was aborted and before its rows are gone.
  // Such an instance would keep the rows, but it runs no code yet, and the second reset ends it.
  state.isRestoring = true;
  await reset();
  await reset();
  state.isRestoring = false;
  const store = first['SNAPSHOTS'] as KVNamespace;
  const { keys } = await store.list();
  await Promise.all(keys.map(({ name }) => store.delete(name)));
}

/** Drops counts that a file sends to the directory after its end. They would be in the rows of the next file. */
function dropLateCounts(state: RuntimeState): void {
  let hasEnded = false;
  state.endFile = () => (hasEnded = true);
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { soon } = BehindCalls.prototype;
  BehindCalls.prototype.soon = function soonUnlessEnded({ env: found, ctx }, now) {
    const get = (of: Env, name: string | symbol): unknown => {
      if (hasEnded) throw new Error('The test file has ended.');
      return Reflect.get(of, name);
    };
    soon.call(this, { env: new Proxy(found, { get }), ctx }, now);
  };
}

/** Deletes the rows of all directories, because a reset leaves them in about one of a hundred files. */
async function clearDirectories(namespace: DurableObjectNamespace): Promise<void> {
  for (const id of await listDurableObjectIds(namespace)) {
    await runInDurableObject(namespace.get(id), async (_instance, { storage }) => {
      await storage.deleteAll();
      await storage.sync();
    });
  }
}

/**
 * Makes a module runner return the Worker's main module without a message if it is loaded. The test plugin resolves it at
 * every call and alarm of an object, each time with a message to Node, and a message that is under way when a test file
 * ends fails the whole run.
 */
function readLoadedWorker(runner: ModuleRunner, state: RuntimeState): void {
  const load = runner.import.bind(runner);
  runner.import = async (id) => {
    if (!id.endsWith('/src/index.ts')) return load(id);
    if (state.isRestoring) throw new Error('The test file has ended.');
    const known = runner.evaluatedModules.getModuleById(id);
    return known?.evaluated === true ? known.exports : load(id);
  };
}

/**
 * Makes a module runner reuse loaded code without a message. Node knows no newer code during a run, but the test plugin
 * sends a message through an object for each of about 2,500 imports per file. No test here mocks a module, which such a
 * message would have to find out.
 */
function reuseLoadedCode({ transport }: ModuleRunner): void {
  const invoke = transport.invoke.bind(transport);
  transport.invoke = async (name, data) => {
    const options = data[2] as { readonly cached?: boolean } | undefined;
    const isLoaded = name === 'fetchModule' && options?.cached === true;
    return isLoaded ? { cache: true } : invoke(name, data);
  };
}
