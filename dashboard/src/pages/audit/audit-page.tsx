import { useEffect, useMemo, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { version } from '../../feed.ts';
import {
  auditQuery,
  filterIn,
  filterProblem,
  linkTerms,
  type AuditFilter,
} from '../../model/audit.ts';
import { rollbackTargets } from '../../model/rollback-target.ts';
import { may } from '../../session.ts';
import { useQuery } from '../../ui/use-query.ts';
import { useAnswer } from '../../ui/use-answer.ts';
import { AuditEntries, type AuditLogEntry } from './audit-entries.tsx';
import { AuditFilterForm } from './audit-filter.tsx';
import { RollbackDialog } from './rollback-dialog.tsx';
import { useRollback } from './use-rollback.ts';
import './audit.css';

const PAGE = 50;

export function AuditPage() {
  const [query, setQuery] = useQuery();
  // The link contains the filter, and other pages link to a time range.
  const { actor = '', action = '', from = '', to = '' } = query;
  const filter = useMemo(() => filterIn({ actor, action, from, to }), [actor, action, from, to]);
  const [older, setOlder] = useState<readonly AuditLogEntry[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [answer] = useAnswer(() => ask(filter, null), [filter, version.value]);
  // Only admins may roll back.
  const [kept] = useAnswer(
    () => (may('admin') ? api('GET /config/versions') : Promise.resolve(null)),
    [version.value],
  );
  const rollback = useRollback();
  // A new first page resets the list, because older pages may overlap with it.
  useEffect(() => {
    setOlder([]);
    setCursor(answer?.ok === true ? answer.body.next_cursor : null);
    setProblem(answer?.ok === false ? answer.problem.detail : null);
  }, [answer]);

  const more = async (): Promise<void> => {
    const next = await ask(filter, cursor);
    if (!next.ok) return setProblem(next.problem.detail);
    setOlder([...older, ...(next.body.entries as AuditLogEntry[])]);
    setCursor(next.body.next_cursor);
  };
  const newest = answer?.ok === true ? (answer.body.entries as AuditLogEntry[]) : [];
  const versions = kept?.ok === true ? kept.body : { version: 0, versions: [] };
  const numbers = new Set(versions.versions.map((each) => each.version));
  const isFiltered = Object.keys(auditQuery(filter)).length > 0;
  return (
    <>
      <h1>Audit</h1>
      <AuditFilterForm
        key={[actor, action, from, to].join(' ')}
        initial={filter}
        onFilter={(next) => setQuery(linkTerms(next))}
      />
      {problem !== null && <p role="alert">{problem}</p>}
      <div class="audit" aria-busy={answer === null}>
        {answer?.ok === true && newest.length === 0 && (
          <p>
            {isFiltered
              ? 'No matching entries. Entries are kept for 90 days.'
              : 'No changes yet. Every configuration change appears here, with its author and the previous values.'}
          </p>
        )}
        <AuditEntries
          entries={[...newest, ...older]}
          targetsOf={(entry) => rollbackTargets(entry, numbers, versions.version)}
          onRollBack={rollback.look}
        />
        {cursor !== null && (
          <button type="button" onClick={() => void more()}>
            Show more
          </button>
        )}
      </div>
      <RollbackDialog rollback={rollback} />
    </>
  );
}

function ask(filter: AuditFilter, cursor: string | null) {
  // An invalid filter is not sent. The form shows its error.
  const query = filterProblem(filter) === null ? auditQuery(filter) : {};
  return api('GET /audit', {
    query: { ...query, limit: PAGE, ...(cursor === null ? {} : { cursor }) },
  });
}
