"""x"""
import typer
