// Set-up of tests in workerd: every pool of theirs is looked at after every event.
import { ViolationLog } from '../../../src/group/observe/violation-log.ts';
import { failByViolations, noteViolation } from '../../support/violations.ts';

// oxlint-disable-next-line typescript/unbound-method -- called with its object below
const { note } = ViolationLog.prototype;
const told = new WeakMap<object, string>();

ViolationLog.prototype.note = function noted(violations, now) {
  const text = JSON.stringify(violations);
  const isNews = Object.values(violations).some((count) => count > 0);
  if (isNews && told.get(violations) !== text) noteViolation(text);
  told.set(violations, text);
  note.call(this, violations, now);
};

failByViolations();
