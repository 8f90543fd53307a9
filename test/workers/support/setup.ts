/*
 * Set-up of tests in workerd. Many test files run in one runtime, one after another, because starting it and sending it
 * the Worker's modules costs more than most files do. Each file gets modules, objects and bindings as if it were the
 * first. A test also fails if a pool breaks an invariant.
 */
import { reset } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { vi } from 'vitest';

interface ModuleRunner {
  readonly evaluatedModules: {
    getModuleById(
      id: string,
    ): { readonly evaluated: boolean; readonly exports?: unknown } | undefined;
  };
  import(id: string): Promise<unknown>;
}

interface RuntimeScope {
  readonly __vitest_mocker__: { readonly moduleRunner: ModuleRunner };
  /** What the first file of this runtime found. */
  firstState?: { readonly bindings: Readonly<Record<string, unknown>> };
}

const scope = globalThis as unknown as RuntimeScope;
const bindings = env as unknown as Record<string, unknown>;

if (scope.firstState === undefined) {
  scope.firstState = { bindings: { ...bindings } };
  readLoadedWorker(scope.__vitest_mocker__.moduleRunner);
} else {
  await restore(scope.firstState.bindings);
}

// After the reset, so that the Worker's modules are those that its tests import.
const { ViolationLog } = await import('../../../src/group/observe/violation-log.ts');
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

/** Removes what the files before have left: modules, objects, copies of the configuration, bindings and globals. */
async function restore(first: Readonly<Record<string, unknown>>): Promise<void> {
  vi.unstubAllGlobals();
  for (const name of Object.keys(bindings)) if (!(name in first)) delete bindings[name];
  Object.assign(bindings, first);
  vi.resetModules();
  await reset();
  const store = first['SNAPSHOTS'] as KVNamespace;
  const { keys } = await store.list();
  await Promise.all(keys.map(({ name }) => store.delete(name)));
}

/**
 * Makes a module runner return the Worker's main module without a message if it is loaded. The test plugin resolves it at
 * every call and alarm of an object, each time with a message to Node, and a message that is under way when a test file
 * ends fails the whole run.
 */
function readLoadedWorker(runner: ModuleRunner): void {
  const load = runner.import.bind(runner);
  runner.import = async (id) => {
    const known = runner.evaluatedModules.getModuleById(id);
    const isLoaded = id.endsWith('/src/index.ts') && known?.evaluated === true;
    return isLoaded ? known.exports : load(id);
  };
}
