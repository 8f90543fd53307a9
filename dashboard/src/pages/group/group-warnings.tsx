import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { warnings } from '../../feed.ts';
import { partitionName } from '../../model/decoded.ts';
import { useAnswer } from '../../ui/use-answer.ts';
import { When } from '../../ui/when.tsx';
import './group-warnings.css';

const SHOWN_AT_FIRST = 5;

/** Warnings of the group, newest first. They reload when the feed reports one. */
export function GroupWarnings({ name }: { readonly name: string }) {
  const [isAll, showAll] = useState(false);
  const reported = warnings.value.find(({ group }) => group === name);
  const news = `${reported?.id} ${reported?.cleared_at}`;
  const [answer] = useAnswer(
    () => api('GET /groups/{name}/warnings', { params: { name } }),
    [name, news],
  );
  const all = answer?.ok === true ? answer.body.warnings : [];
  const shown = isAll ? all : all.slice(0, SHOWN_AT_FIRST);
  return (
    <section class="group-warnings" aria-labelledby="group-warnings" aria-busy={answer === null}>
      <h2 id="group-warnings">Warnings</h2>
      {answer?.ok === false && <p role="alert">{answer.problem.detail}</p>}
      {answer?.ok === true && all.length === 0 && <p class="help">No warnings yet.</p>}
      <ul>
        {shown.map(({ id, at, kind, partition, message, cleared_at }) => (
          <li key={id}>
            <When at={at} /> <b>{kind.replaceAll('_', ' ')}</b>
            {partition !== null && (
              <>
                {' '}
                <bdi>{partitionName(partition)}</bdi>
              </>
            )}{' '}
            <bdi>{message}</bdi>
            {cleared_at !== undefined && (
              <small>
                {' '}
                resolved <When at={cleared_at} />
              </small>
            )}
          </li>
        ))}
      </ul>
      {!isAll && all.length > shown.length && (
        <button type="button" onClick={() => showAll(true)}>
          Show all {all.length}
        </button>
      )}
    </section>
  );
}
