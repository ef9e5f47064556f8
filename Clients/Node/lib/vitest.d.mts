export * from './vitest.js';
