import { plural } from '../../format.ts';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { confirm } from '../../ui/confirm.tsx';
import { complain, say } from '../../ui/toasts.tsx';
import { TextField } from './text-field.tsx';

const ACTS = {
  cancelWaiters: {
    address: 'DELETE /waiters',
    name: 'Cancel queued calls',
    short: 'Cancel',
    verb: 'Cancel calls',
    says: 'Each is rejected as cancelled, and is not retried.',
    done: 'Cancelled',
  },
  releaseLeases: {
    address: 'DELETE /leases',
    name: 'Release the slots of calls in flight',
    short: 'Release',
    verb: 'Release slots',
    says: 'Headgate aborts each upstream call, then its slot is free.',
    done: 'Released',
  },
} as const;

type CallsAct = keyof typeof ACTS;

interface MeantCall {
  readonly tenant: string;
  readonly agent: string;
  readonly group: string;
}

/** Ends the calls of a tenant or agent run in all groups, after a confirmation with their number. */
export function CallsForm({ asked }: { readonly asked: MeantCall }) {
  const [meant, setMeant] = useState(asked);
  const [act, setAct] = useState<CallsAct>('cancelWaiters');
  const [isTried, setTried] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const isMissing = meant.tenant === '' && meant.agent === '';

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setTried(true);
    if (isMissing) return;
    setBusy(true);
    await end(act, meant);
    setBusy(false);
  };
  const field = (name: keyof MeantCall, label: string, help: string) => (
    <TextField
      id={`several-${name}`}
      label={label}
      help={help}
      value={meant[name]}
      errors={isTried && isMissing && name === 'tenant' ? ['Enter a tenant or an agent run.'] : []}
      onValue={(value) => setMeant({ ...meant, [name]: value })}
    />
  );
  return (
    <section aria-labelledby="several-calls">
      <h2 id="several-calls">Calls</h2>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <label for="several-act">Action</label>
        <select
          id="several-act"
          value={act}
          onInput={(event) => setAct(event.currentTarget.value as CallsAct)}
        >
          {Object.entries(ACTS).map(([value, { name }]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
        {field('tenant', 'Tenant', 'The gateway key, or another tenant name that the group uses.')}
        {field('agent', 'Agent run', 'As the caller named it.')}
        {field('group', 'Groups', 'A glob such as openai-*. Empty means all groups.')}
        <div class="actions">
          <button type="submit" class="danger" disabled={isBusy}>
            {ACTS[act].verb} …
          </button>
        </div>
      </form>
    </section>
  );
}

/** Counts the calls, asks for confirmation, and ends them. */
async function end(act: CallsAct, { tenant, agent, group }: MeantCall): Promise<void> {
  const { short, verb, says, done } = ACTS[act];
  const query = {
    ...(tenant === '' ? {} : { tenant }),
    ...(agent === '' ? {} : { agent }),
    ...(group === '' ? {} : { group }),
  };
  const found = await api(ACTS[act].address, { query: { ...query, dry_run: 'true' } });
  if (!found.ok) return complain(found.problem.detail);
  const { calls, groups } = found.body;
  if (calls === 0) return say('No calls match now.');
  const where = Object.entries(groups).map(([name, count]) => `${name} (${count})`);
  const title = `${short} ${callsOf(calls)}?`;
  const isSure = await confirm({
    title,
    verb,
    says: (
      <p>
        In <bdi>{where.join(', ')}</bdi>. {says}
      </p>
    ),
  });
  if (!isSure) return;
  const result = await api(ACTS[act].address, { query });
  if (!result.ok) return complain(result.problem.detail);
  say(`${done}: ${callsOf(result.body.calls)}.`);
}

function callsOf(count: number): string {
  return plural(count, 'call');
}
