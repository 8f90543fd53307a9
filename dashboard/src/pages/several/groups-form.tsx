import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { groups } from '../../feed.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { TextField } from './text-field.tsx';

const ACTS = {
  pause: { verb: 'Pause', says: 'Nothing is granted there until they are resumed.' },
  drain: { verb: 'Drain', says: 'New calls are refused there until they are resumed.' },
  resume: { verb: 'Resume', says: 'Those that wait there go on as there is room.' },
} as const;

type GroupsAct = keyof typeof ACTS;

/** Switches several groups in one change. */
export function GroupsForm() {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const globs = text.split(/[\s,]+/).filter((glob) => glob !== '');
  const act = async (to: GroupsAct): Promise<void> => {
    if (globs.length === 0) return setProblem('Name at least one group, or a glob of some.');
    const { verb, says } = ACTS[to];
    const title = `${verb} ${globs.join(', ')}?`;
    if (to !== 'resume' && !(await confirm({ title, verb, says: <p>{says}</p> }))) return;
    const result = await api('switchGroups', { body: { groups: globs, to } });
    setProblem(result.ok ? null : result.problem.detail);
    if (result.ok) say(`${verb}: ${result.body.groups.join(', ')}.`);
    else complain(result.problem.detail);
  };
  return (
    <section aria-labelledby="several-groups">
      <h2 id="several-groups">Groups</h2>
      <form onSubmit={(event) => event.preventDefault()} noValidate>
        <TextField
          id="several-globs"
          label="Which groups"
          help={`Names or globs with spaces between them, as in openai-* auto:zai. ${groups.value.length} groups are known.`}
          value={text}
          errors={problem === null ? [] : [problem]}
          onValue={setText}
        />
        <div class="actions">
          {(['pause', 'drain', 'resume'] as const).map((to) => (
            <button key={to} type="button" onClick={() => void act(to)}>
              {ACTS[to].verb}
            </button>
          ))}
        </div>
      </form>
    </section>
  );
}
