import { render } from 'preact';
import './ui/leave-guard.ts'; // registers its listeners before the router does
import { App } from './app.tsx';
import './style/index.css';

const root = document.getElementById('app');
if (root === null) throw new Error('index.html has no element #app.');
render(<App />, root);
