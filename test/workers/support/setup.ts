// Set-up of tests in workerd: each fails if a pool breaks an invariant, and resolves the Worker's main module once.
import { ViolationLog } from '../../../src/group/observe/violation-log.ts';
import { failByViolations, noteViolation } from '../../support/violations.ts';

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

/*
 * The test plugin resolves the Worker's main module at every call and alarm of an object, each time with a message to
 * Node. A message that is under way when a test file ends fails the whole run, so a loaded module is taken as it is.
 */
interface ModuleRunner {
  readonly evaluatedModules: {
    getModuleById(
      id: string,
    ): { readonly evaluated: boolean; readonly exports?: unknown } | undefined;
  };
  import(id: string): Promise<unknown>;
}

declare const __vitest_mocker__: { readonly moduleRunner: ModuleRunner };

const { moduleRunner } = __vitest_mocker__;
const load = moduleRunner.import.bind(moduleRunner);

moduleRunner.import = async (id) => {
  const known = moduleRunner.evaluatedModules.getModuleById(id);
  const isLoaded = id.endsWith('/src/index.ts') && known?.evaluated === true;
  return isLoaded ? known.exports : load(id);
};
