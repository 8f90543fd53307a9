import { useState } from 'preact/hooks';
import { signIn } from '../session.ts';

/** Asks for the ADMIN_TOKEN or an admin key. The server exchanges it for a cookie, and the page does not store it. */
export function SignInForm() {
  const [token, setToken] = useState('');
  const [wrong, setWrong] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    const problem = await signIn(token.trim());
    setBusy(false);
    setWrong(problem?.detail ?? null);
  };

  return (
    <form onSubmit={(event) => void submit(event)}>
      <label for="token">Token</label>
      <input
        id="token"
        value={token}
        onInput={(event) => setToken(event.currentTarget.value)}
        type="password"
        autocomplete="current-password"
        required
        autofocus
        aria-describedby="token-help"
        aria-invalid={wrong !== null}
      />
      <p id="token-help" class="help">
        The <code>ADMIN_TOKEN</code> of this deployment, or an admin key (<code>hga_…</code>).
      </p>
      {wrong !== null && <p role="alert">{wrong}</p>}
      <button type="submit" class="primary" disabled={isBusy}>
        Sign in
      </button>
    </form>
  );
}
