import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { groups } from '../../feed.ts';
import { plural } from '../../format.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { TextField } from './text-field.tsx';

const ACTS = {
  pause: {
    verb: 'Pause',
    says: 'No new calls start there until the groups are resumed.',
    done: 'Paused',
  },
  drain: {
    verb: 'Drain',
    says: 'New calls are rejected there until the groups are resumed.',
    done: 'Draining',
  },
  resume: { verb: 'Resume', says: 'Queued calls start as slots become free.', done: 'Resumed' },
} as const;

type GroupsAct = keyof typeof ACTS;

export function GroupsForm() {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const globs = text.split(/[\s,]+/).filter((glob) => glob !== '');
  const act = async (to: GroupsAct): Promise<void> => {
    if (globs.length === 0) return setProblem('Enter at least one group name or glob.');
    const { verb, says, done } = ACTS[to];
    const title = `${verb} ${globs.join(', ')}?`;
    if (to !== 'resume' && !(await confirm({ title, verb, says: <p>{says}</p> }))) return;
    const result = await api('POST /groups/switch', { body: { groups: globs, to } });
    setProblem(result.ok ? null : result.problem.detail);
    if (result.ok) say(`${done}: ${result.body.groups.join(', ')}.`);
    else complain(result.problem.detail);
  };
  return (
    <section aria-labelledby="several-groups">
      <h2 id="several-groups">Groups</h2>
      <form onSubmit={(event) => event.preventDefault()} noValidate>
        <TextField
          id="several-globs"
          label="Group names"
          help={`Names or globs, separated by spaces, such as openai-* auto:zai. ${plural(groups.value.length, 'group')} in total.`}
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
