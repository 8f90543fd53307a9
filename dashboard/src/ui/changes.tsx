import type { AuditChange } from '../../../src/contract/history.ts';
import { isInstant, reportedOf } from '../model/change-list.ts';
import { shortText } from '../model/short-text.ts';
import { When } from './when.tsx';
import './changes.css';

export function Changes(props: {
  readonly changes: readonly AuditChange[];
  /** Number of changes that are not listed. */
  readonly omitted?: number;
}) {
  const { changes, omitted = 0 } = props;
  return (
    <ul class="changes">
      {changes.map((change) => (
        <li key={change.path}>
          {change.path !== '' && <code>{change.path}</code>}{' '}
          {'from' in change && (
            <del>
              <span class="visually-hidden">from </span>
              <Value value={reportedOf(change.path, change.from)} />
            </del>
          )}
          {'from' in change && 'to' in change && <span aria-hidden="true"> → </span>}
          {'to' in change && (
            <ins>
              <span class="visually-hidden">{'from' in change ? ' to ' : 'set to '}</span>
              <Value value={reportedOf(change.path, change.to)} />
            </ins>
          )}
        </li>
      ))}
      {omitted > 0 && <li class="help">and {omitted} more</li>}
    </ul>
  );
}

function Value({ value }: { readonly value: unknown }) {
  if (isInstant(value)) return <When at={value} />;
  const short = shortText(value);
  if (short !== null) return <>{short}</>;
  return <pre>{JSON.stringify(value, null, 2)}</pre>;
}
